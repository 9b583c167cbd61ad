/**
 * Runs one command in a sandbox without a service: for probes, and for attempts to escape.
 *
 * Everything is made in a temporary directory and removed at the end.
 */
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { messageOf } from '../../shared/contract/errors.ts'
import { ownDir } from '../host/own-dirs.ts'
import { launcherArguments } from './arguments.ts'
import type { LauncherProgram } from './embedded.ts'
import { type Outcome, parseOutcome } from './outcome.ts'
import type { LaunchEgress, LaunchPlan, LaunchSandbox } from './plan.ts'
import { ROOT_WORKSPACE } from './sandbox-view.ts'

export interface ThrowAwayOptions {
  /** The workspace is made here. `uid` is for root only. */
  readonly sandbox: Omit<LaunchSandbox, 'workspace' | 'script'>
  readonly command: readonly [program: string, ...args: string[]]
  readonly env?: Readonly<Record<string, string>>
  /** Milliseconds. Default: 30 s. */
  readonly wallTimeMs?: number
  readonly limits?: Pick<LaunchPlan, 'cgroup' | 'memory_max' | 'pids_max' | 'cpu_time_sec'>
  readonly egress?: LaunchEgress
  /** Called when the directories exist, before anything runs. */
  readonly prepare?: (places: { readonly workspace: string; readonly taskDir: string }) => void
  /** Ends the command early. */
  readonly signal?: AbortSignal
}

export interface ThrowAwayEnding {
  /** Undefined if the launcher could not write one. Then `complaints` says why. */
  readonly outcome: Outcome | undefined
  readonly stdout: string
  readonly stderr: string
  /** The standard error of the launcher. */
  readonly complaints: string
}

const WALL_TIME_MS = 30_000
const GRACE_MS = 1_000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** Throws the reason of `signal` when that fires, after everything is removed. */
export async function runInSandbox(program: LauncherProgram, options: ThrowAwayOptions): Promise<ThrowAwayEnding> {
  const { sandbox, command, env = {}, wallTimeMs = WALL_TIME_MS, limits, egress, prepare, signal } = options
  const top = ownDir('sandbox')
  const [taskDir, workspace] = [join(top, 'task'), join(top, 'workspace')]
  try {
    chmodSync(top, 0o711) // a task without a mount namespace has to pass
    for (const directory of [taskDir, workspace]) mkdirSync(directory, { mode: 0o700 })
    const complaint = sandbox.uid === undefined ? undefined : giveAway(workspace, sandbox.uid)
    if (complaint !== undefined) return { outcome: undefined, stdout: '', stderr: '', complaints: complaint }
    prepare?.({ workspace, taskDir })
    const plan: LaunchPlan = {
      task_id: 'throw-away',
      task_dir: taskDir,
      workdir: sandbox.rootfs === undefined ? workspace : ROOT_WORKSPACE,
      command,
      wall_time_ms: wallTimeMs,
      grace_ms: GRACE_MS,
      max_output_bytes: MAX_OUTPUT_BYTES,
      ...limits,
      ...(egress !== undefined && { egress }),
      sandbox: { ...sandbox, workspace, masks: [top, ...(sandbox.masks ?? [])] },
    }
    const launcher = Bun.spawn([...program.command, ...launcherArguments(plan)], {
      env: { ...program.wrapEnvironment(env) },
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const complaints = await endedBy(launcher, signal)
    const read = (name: string) => readOr(join(taskDir, name), '')
    return {
      outcome: parseOutcome(read('outcome')),
      stdout: read('stdout.log'),
      stderr: read('stderr.log'),
      complaints,
    }
  } finally {
    rmSync(top, { recursive: true, force: true })
  }
}

/** Milliseconds that a launcher gets to end after SIGTERM, including the grace period of its task. */
const END_MS = GRACE_MS + 2_000

/** The standard error of the launcher, once it has ended, by itself or by `signal`. */
async function endedBy(launcher: Subprocess<'ignore', 'ignore', 'pipe'>, signal?: AbortSignal): Promise<string> {
  let giveUp: Timer | undefined
  const tell = () => {
    launcher.kill('SIGTERM')
    giveUp = setTimeout(() => launcher.kill('SIGKILL'), END_MS)
  }
  if (signal?.aborted) tell()
  else signal?.addEventListener('abort', tell, { once: true })
  const complaints = await new Response(launcher.stderr).text()
  await launcher.exited
  signal?.removeEventListener('abort', tell)
  clearTimeout(giveUp)
  signal?.throwIfAborted()
  return complaints
}

/** Why the workspace cannot belong to `uid`, or undefined: the root of a container may lack that user. */
function giveAway(workspace: string, uid: number): string | undefined {
  try {
    chownSync(workspace, uid, uid)
    return undefined
  } catch (error) {
    return `cannot give the workspace to user ${uid}: ${messageOf(error)} (choose another with --sandbox-uid)`
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}
