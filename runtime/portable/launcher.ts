/**
 * A launcher for platforms without the native one. It has the same arguments, files and events, supports the `process`
 * profile without cgroups, and runs as a hidden subcommand of our executable, at the cost of a Bun process.
 *
 * It lacks what takes a system call between fork and exec, or the kernel's help. Processes that leave the process group
 * of the task are not found, and a killed launcher does not take its task along. The program may run for a moment
 * before its process is recorded. The environment of the task arrives wrapped (environment.ts).
 */
import { constants, existsSync, fstatSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { getSystemErrorMap } from 'node:util'
import { tryLock } from '../../shared/files/directory-lock.ts'
import { taskDirId } from '../files/task-dir.ts'
import { maskTextsIn, withoutMaskVariables } from '../launch/mask-variables.ts'
import type { LaunchedProcess, Outcome } from '../launch/outcome.ts'
import type { LaunchDescriptors, LaunchPlan } from '../launch/plan.ts'
import { Complaint, parseArguments } from './arguments.ts'
import { unwrapEnvironment } from './environment.ts'
import { attempt, Fault } from './fault.ts'
import { limitOurselves } from './limits.ts'
import type { Logs } from './masked-logs.ts'
import { findProgram } from './program.ts'
import { RecordFile } from './record.ts'
import { supervise } from './supervise.ts'

const EXIT_OUTCOME_LOST = 123
const EXIT_WALL_TIME = 124
const EXIT_NOT_STARTED = 125
const EXIT_SIGNAL_BASE = 128

const TASK_UMASK = 0o022

/** Runs the task that `argv` describes. Resolves with the exit code of the launcher. Never throws. */
export async function runPortableLauncher(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  try {
    const { plan, descriptors } = parseArguments(argv)
    return await new Launcher(plan, descriptors, unwrapEnvironment(env)).run()
  } catch (error) {
    if (!(error instanceof Complaint)) throw error
    complain(error.message)
    return EXIT_NOT_STARTED
  }
}

class Launcher {
  constructor(
    private readonly plan: LaunchPlan,
    private readonly descriptors: LaunchDescriptors,
    private readonly env: Readonly<Record<string, string>>,
  ) {}

  async run(): Promise<number> {
    const { plan } = this
    let record: RecordFile
    try {
      this.lock()
      record = attempt('outcome', () => new RecordFile(plan.task_dir))
    } catch (error) {
      return this.giveUp(error, EXIT_NOT_STARTED)
    }
    const outcome = await this.runTask(record)
    try {
      attempt('outcome', () => record.end(outcome))
    } catch (error) {
      return this.giveUp(error, hasRun(outcome) ? EXIT_OUTCOME_LOST : EXIT_NOT_STARTED)
    }
    this.notify(`ended ${plan.task_id}`)
    return exitCodeOf(outcome)
  }

  /** From here on faults are recorded in the outcome. */
  private async runTask(record: RecordFile): Promise<Outcome> {
    const { task_dir, workdir, command, stdin: name } = this.plan
    let logs: Logs | undefined
    let process: LaunchedProcess | undefined
    try {
      logs = attempt('logs', () => openLogs(task_dir))
      const stdin = name === undefined ? undefined : attempt('stdio', () => openInput(join(task_dir, name)))
      limitOurselves()
      globalThis.process.umask(TASK_UMASK)
      const program = findProgram(command[0], workdir, this.env.PATH)
      const { task_id } = this.plan
      const ended = await supervise(
        { plan: this.plan, program, env: this.envOfTask(), logs, masks: this.masks(), stdin },
        {
          onStarted: (started) => {
            process = started
            attempt('started', () => record.start(started))
            const { launcher_pid, pid, pgid, start_time, started_ms } = started
            this.notify(`started ${task_id} ${launcher_pid} ${pid} ${pgid} ${start_time} ${started_ms}`)
          },
          onTimeout: () => this.notify(`timeout ${task_id}`),
        },
      )
      return { ...ended, ...(process === undefined ? {} : { process }) }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.report(error)
      return notStarted(error, logs, process)
    }
  }

  private envOfTask(): Readonly<Record<string, string>> {
    return this.plan.mask_count === undefined ? this.env : withoutMaskVariables(this.env)
  }

  private masks(): readonly Buffer[] {
    const { mask_count = 0 } = this.plan
    if (mask_count === 0) return []
    const texts = maskTextsIn(this.env, mask_count)
    if (texts === undefined) throw new Fault('masks', 'EINVAL')
    return texts
  }

  /** Throws for a task that has run before. */
  private lock(): void {
    const { task_dir, task_dir_id } = this.plan
    for (const fd of Object.values(this.descriptors)) attempt('descriptors', () => fstatSync(fd))
    const { O_DIRECTORY, O_RDONLY } = constants
    const fd = this.descriptors.lock_fd ?? attempt('task_dir', () => openSync(task_dir, O_RDONLY | O_DIRECTORY))
    if (!tryLock(fd)) throw new Fault('lock', 'EAGAIN')
    if (task_dir_id !== undefined && taskDirId(task_dir) !== task_dir_id) throw new Fault('task_dir', 'ESTALE')
    for (const name of ['started', 'outcome']) {
      if (existsSync(join(task_dir, name))) throw new Fault('task_dir', 'EEXIST')
    }
  }

  private giveUp(error: unknown, exitCode: number): number {
    if (!(error instanceof Fault)) throw error
    this.report(error)
    this.notify(`failed ${this.plan.task_id} ${error.step} ${error.errno}`)
    return exitCode
  }

  private report({ step, errno, code }: Fault): void {
    const [, reason] = getSystemErrorMap().get(-errno) ?? [code, code]
    complain(`task ${this.plan.task_id}: ${step}: ${reason}`)
  }

  /** A full pipe, or one without a reader, is no fault of the task. */
  private notify(line: string): void {
    const { notify_fd } = this.descriptors
    if (notify_fd === undefined) return
    try {
      writeSync(notify_fd, `${line}\n`)
    } catch {
      // the record says it, too
    }
  }
}

function openLogs(taskDir: string): Logs {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants
  const open = (name: string) => openSync(join(taskDir, name), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
  return { stdout: open('stdout.log'), stderr: open('stderr.log') }
}

const openInput = (path: string) => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)

function notStarted({ step, errno }: Fault, logs?: Logs, process?: LaunchedProcess): Outcome {
  return {
    ending: { how: 'launch_failed', step, errno },
    reason: 'none',
    ...(process === undefined ? {} : { process }),
    ...{ finished_ms: Date.now(), duration_ms: 0, leftovers_killed: 0, leftovers_alive: 0 },
    ...(logs === undefined ? {} : { stdout_bytes: 0, stderr_bytes: 0 }),
  }
}

const hasRun = ({ ending }: Outcome): boolean => ending.how !== 'launch_failed'

/** As much of the outcome as an exit code can express (outcome.c). */
function exitCodeOf({ ending, reason }: Outcome): number {
  if (ending.how !== 'exited' && ending.how !== 'signaled') return EXIT_NOT_STARTED
  if (reason === 'wall_time') return EXIT_WALL_TIME
  return ending.how === 'signaled' ? EXIT_SIGNAL_BASE + ending.signal : ending.exit_code
}

/** Prints one line on standard error, even if the text has line ends. */
function complain(text: string): void {
  writeSync(2, `taskmill-launcher: ${text.replace(/\p{Cc}/gu, '?')}\n`)
}
