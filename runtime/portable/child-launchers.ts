/**
 * Starts portable launchers as children of the service. A portable launcher takes a while to begin, so a fork server
 * would gain nothing.
 *
 * The service takes the lock of the task, and the launcher inherits it. So a launcher that is about to begin never
 * looks as if it were gone.
 */
import { closeSync } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { tryLock } from '../../shared/files/directory-lock.ts'
import { launcherArguments } from '../launch/arguments.ts'
import type { TaskError } from '../launch/classification.ts'
import type { LauncherProgram } from '../launch/embedded.ts'
import { explainSpawnFailure } from '../launch/faults.ts'
import { openTaskDirectory } from '../launch/launcher-files.ts'
import type { Environment, Launched, Launcher, LauncherEnd, LauncherHost } from '../launch/launcher-host.ts'
import type { LaunchPlan } from '../launch/plan.ts'

/** Settings that all launchers of a service share. */
interface LaunchSurroundings {
  readonly program: LauncherProgram
  /** Descriptor of the FIFO for lines to the service. */
  readonly notifyFd: number
  /** Descriptor of the file for what launchers complain about. */
  readonly complaintsFd: number
}

type Launch =
  | { readonly launcher: RunningLauncher }
  /** Thrown if a launcher could not be started because of the task or the machine. */
  | { readonly error: TaskError }

interface RunningLauncher {
  readonly pid: number
  /** Resolves with its exit code, 128 + n for signal n, once it has ended. The record says more. */
  readonly exited: Promise<number>
}

/** The descriptors that a launcher sees, after its three standard streams. */
const DESCRIPTORS = { lock_fd: 3, notify_fd: 4 } as const

/**
 * Starts a launcher for `plan`, with `env` as the whole environment of the task. Throws when the directory of the task
 * cannot be used, or another launcher has it.
 */
export function launch(
  plan: LaunchPlan,
  env: Environment,
  { program, notifyFd, complaintsFd }: LaunchSurroundings,
): Launch {
  const lockFd = lockTask(plan.task_dir)
  try {
    const child = Bun.spawn([...program.command, ...launcherArguments(plan, DESCRIPTORS)], {
      env: { ...program.wrapEnvironment(env) },
      detached: true,
      stdio: ['ignore', 'ignore', complaintsFd, lockFd, notifyFd],
    })
    child.unref()
    return { launcher: { pid: child.pid, exited: child.exited } }
  } catch (error) {
    const explained = explainSpawnFailure(systemCodeOf(error) ?? '')
    if (explained === undefined) throw error
    return { error: { code: 'launch_failed', ...explained } }
  } finally {
    closeSync(lockFd)
  }
}

function lockTask(taskDir: string): number {
  const fd = openTaskDirectory(taskDir)
  if (tryLock(fd)) return fd
  closeSync(fd)
  throw new Error(`a launcher is at work in ${taskDir} already`)
}

export class ChildLaunchers implements LauncherHost {
  readonly #surroundings: LaunchSurroundings
  #isClosed = false

  constructor(surroundings: LaunchSurroundings) {
    this.#surroundings = surroundings
  }

  launch(plan: LaunchPlan, env: Environment): Launched {
    if (this.#isClosed) return { launcher: childLauncher(new Promise(() => {})) }
    const launched = launch(plan, env, this.#surroundings)
    if ('error' in launched) return launched
    return { launcher: childLauncher(launched.launcher.exited.then((exitCode) => ({ exitCode }))) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }
}

/** The system tells of the end of a child. */
const childLauncher = (gone: Promise<LauncherEnd>): Launcher => ({
  gone,
  heard: () => {},
  lookAround: () => true,
  serverEnded: () => {},
})
