/**
 * The launchers of this service's tasks: started, told to end their task, and read when they are done.
 *
 * Whatever a launcher did is in the directory of its task; what it says while it lives only makes us look.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { TaskRequest } from '../intake/validate.ts'
import type { TaskCgroups } from '../launcher/cgroup.ts'
import { type Asked, classify } from '../launcher/classification.ts'
import { type LaunchedProcess, type Outcome, parseOutcome, parseStarted } from '../launcher/outcome.ts'
import { isLauncherAlive, requestKill, spawnLauncher } from '../launcher/spawn.ts'
import { readOutput } from '../store/output.ts'
import { statusResponse } from '../store/status-response.ts'
import { makeTaskDir, type TaskDir, taskDir } from '../store/task-dir.ts'
import type { LiveTask, TaskStore } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Ending, StartedProcess } from './ending.ts'
import { type LaunchSettings, launchPlan, taskEnvironment } from './launch-plan.ts'
import type { RunningTask } from './running-task.ts'
import { endMarked, markOf } from './stragglers.ts'

export interface LaunchesOptions {
  /** The launcher and its arguments before ours. */
  readonly command: readonly string[]
  readonly settings: LaunchSettings
  /** Undefined where they are disabled. */
  readonly cgroups: TaskCgroups | undefined
  /** Absolute. */
  readonly dataDir: string
  /** Tells our tasks from those of other services of this machine. */
  readonly serviceId: string
  readonly notifyFd: number
  readonly logFd: number
  readonly store: TaskStore
  readonly log: Log
}

export class Launches {
  readonly #options: LaunchesOptions

  constructor(options: LaunchesOptions) {
    this.#options = options
  }

  /** Runs the launcher of a task whose place is written down, and gives its ending. Never rejects. */
  async run(running: RunningTask, given: TaskRequest | undefined): Promise<Ending> {
    const { task } = running
    const { command, settings, cgroups, notifyFd, logFd } = this.#options
    let exitCode: number
    try {
      const request = given ?? this.#storedRequest(task)
      const dir = this.#dirOf(task)
      if (given === undefined) remakeIfGone(dir, request)
      const context = { dir, cgroup: cgroups?.forTask(task.task_id), mark: this.#markOf(task) }
      const plan = launchPlan(request, JSON.parse(task.row.execution_plan) as ExecutionPlan, context, settings)
      const env = taskEnvironment(request, context, settings)
      const launcher = spawnLauncher({ command, plan, env, notifyFd, logFd })
      running.launcherPid = launcher.pid
      exitCode = await launcher.exited
    } catch (error) {
      return launchFailed(error)
    }
    return await this.ending(task, exitCode)
  }

  /** How a task ended whose launcher is gone. `exitCode` is that of a launcher of ours. */
  async ending(task: LiveTask, exitCode?: number): Promise<Ending> {
    const outcome = this.#outcomeOf(task)
    if (outcome !== undefined) return endingOf(outcome, this.#askedOf(task))
    await this.#endWhatIsLeft(task)
    return lost(task.row, exitCode)
  }

  /** False when the launcher could not be told yet, or any more. */
  sendKill(task: LiveTask): boolean {
    return requestKill(this.#dirOf(task).task_dir)
  }

  isLive(task: LiveTask): boolean {
    return isLauncherAlive(this.#dirOf(task).task_dir)
  }

  /** The process of a task, where its launcher came as far as that. */
  startedProcess(task: LiveTask): StartedProcess | undefined {
    const { task_dir } = this.#dirOf(task)
    const text = readTextIfThere(join(task_dir, 'started')) ?? readTextIfThere(join(task_dir, 'outcome'))
    const started = text === undefined ? undefined : parseStarted(text)
    return started === undefined ? undefined : startedProcess(started)
  }

  /** Whether the launcher of a task came as far as making a process, or an outcome without one. */
  hasBegun(task: LiveTask): boolean {
    return this.startedProcess(task) !== undefined || this.#outcomeOf(task) !== undefined
  }

  /** Writes the final status beside the output. */
  writeResult(row: TaskRow): void {
    const { dataDir, log } = this.#options
    const dir = taskDir(dataDir, row.task_id)
    try {
      const status = statusResponse(row, dir, readOutput(row, dir))
      writeFileSync(dir.result_path, JSON.stringify(status), { mode: 0o600 })
    } catch (error) {
      log.warn('cannot write the result file: the status is in the database', {
        task_id: row.task_id,
        cause: messageOf(error),
      })
    }
  }

  #dirOf(task: LiveTask): TaskDir {
    return taskDir(this.#options.dataDir, task.task_id)
  }

  #markOf(task: LiveTask): string {
    return markOf(this.#options.serviceId, task.task_id)
  }

  #storedRequest(task: LiveTask): TaskRequest {
    return JSON.parse(this.#options.store.requestOf(task.task_id)) as TaskRequest
  }

  #outcomeOf(task: LiveTask): Outcome | undefined {
    const { task_dir } = this.#dirOf(task)
    // A power cut may have undone the renaming of a file that was complete and synced.
    for (const name of ['outcome', 'started']) {
      const outcome = parseOutcome(readTextIfThere(join(task_dir, name)) ?? '')
      if (outcome !== undefined) return outcome
    }
    return undefined
  }

  #askedOf(task: LiveTask): Asked {
    const { execution, limits, sandbox } = this.#storedRequest(task)
    return {
      ...limits,
      program: execution.kind === 'command' ? execution.program : (execution.interpreter[0] ?? ''),
      workdir: join(this.#dirOf(task).workspace, sandbox.workspace_subdir ?? ''),
      max_output_bytes: this.#options.settings.maxOutputBytes,
    }
  }

  /** Its launcher was killed, and could not do it. */
  async #endWhatIsLeft(task: LiveTask): Promise<void> {
    const { cgroups, log } = this.#options
    const isGroupEnded = (await cgroups?.end(task.task_id)) ?? true
    if ((await endMarked(this.#markOf(task))) && isGroupEnded) return
    log.error('processes of a task whose launcher is gone cannot be killed', { task_id: task.task_id })
  }
}

/** A task that waited is launched from the database: its directory may have gone, or never reached the disk. */
function remakeIfGone(dir: TaskDir, request: TaskRequest): void {
  const isWhole = readTextIfThere(dir.request_path) !== undefined
  if (isWhole) return
  makeTaskDir(dir, {
    request: JSON.stringify(request),
    script: request.execution.kind === 'script' ? request.execution.script : undefined,
    workspaceSubdir: request.sandbox.workspace_subdir ?? '',
  })
}

function readTextIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

const startedProcess = ({ launcher_pid, pid, pgid, started_ms }: LaunchedProcess): StartedProcess => ({
  launcherPid: launcher_pid,
  pid,
  pgid,
  startedAt: started_ms,
})

function endingOf(outcome: Outcome, asked: Asked): Ending {
  const { status, error, exit_code, exit_signal, usage } = classify(outcome, asked)
  const hasStarted = outcome.ending.how !== 'launch_failed' && outcome.ending.how !== 'sandbox_setup_failed'
  return {
    status,
    error,
    exitCode: exit_code,
    exitSignal: exit_signal,
    usage,
    started: hasStarted && outcome.process !== undefined ? startedProcess(outcome.process) : undefined,
    isTimeout: outcome.reason === 'wall_time',
    finishedAt: outcome.finished_ms,
  }
}

const launchFailed = (error: unknown): Ending => ({
  status: 'failed',
  error: { code: 'launch_failed', message: `cannot start the launcher of the task: ${messageOf(error)}` },
  finishedAt: Date.now(),
})

/** Neither a launcher nor an outcome. */
function lost({ started_at }: TaskRow, exitCode: number | undefined): Ending {
  const now = Date.now()
  const message =
    exitCode === undefined
      ? 'task lost during runtime restart'
      : `task lost: its launcher ended with ${exitCode} and wrote no outcome (was it killed, or is the disk full? see launchers.log in the data directory)`
  return {
    status: 'failed',
    error: { code: 'internal', message },
    ...(started_at !== null && { usage: { duration_ms: now - started_at } }),
    finishedAt: now,
  }
}
