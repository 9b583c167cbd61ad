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
import type { LauncherProgram } from '../launch/embedded.ts'
import { explainSpawnFailure } from '../launch/faults.ts'
import { openTaskDirectory } from '../launch/launcher-files.ts'
import type { Environment, Launched, LauncherHost } from '../launch/launcher-host.ts'
import type { LaunchPlan } from '../launch/plan.ts'

/** Settings that all launchers of a service share. */
interface LaunchSurroundings {
  readonly program: LauncherProgram
  /** Descriptor of the FIFO for lines to the service. */
  readonly notifyFd: number
  /** Descriptor of the file for what launchers complain about. */
  readonly complaintsFd: number
}

/** The descriptors that a launcher sees, after its three standard streams. */
const DESCRIPTORS = { lock_fd: 3, notify_fd: 4 } as const

export class ChildLaunchers implements LauncherHost {
  readonly #surroundings: LaunchSurroundings
  #isClosed = false

  constructor(surroundings: LaunchSurroundings) {
    this.#surroundings = surroundings
  }

  /** Throws also when another launcher has the directory of the task. */
  launch(plan: LaunchPlan, env: Environment): Launched {
    if (this.#isClosed) return { launcher: { gone: new Promise(() => {}) } }
    const { program, notifyFd, complaintsFd } = this.#surroundings
    const lockFd = lockTask(plan.task_dir)
    try {
      const child = Bun.spawn([...program.command, ...launcherArguments(plan, DESCRIPTORS)], {
        env: { ...program.wrapEnvironment(env) },
        detached: true,
        stdio: ['ignore', 'ignore', complaintsFd, lockFd, notifyFd],
      })
      child.unref()
      return { launcher: { gone: child.exited.then((exitCode) => ({ exitCode })) } }
    } catch (error) {
      const explained = explainSpawnFailure(systemCodeOf(error) ?? '')
      if (explained === undefined) throw error
      return { error: { code: 'launch_failed', ...explained } }
    } finally {
      closeSync(lockFd)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }
}

function lockTask(taskDir: string): number {
  const fd = openTaskDirectory(taskDir)
  if (tryLock(fd)) return fd
  closeSync(fd)
  throw new Error(`a launcher is at work in ${taskDir} already`)
}
