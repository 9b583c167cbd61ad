/** Starts launchers, asks them for an end, asks whether they live. Never by a pid: it may be somebody else's by then. */
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { tryLock } from '../../shared/directory-lock.ts'
import { systemCodeOf } from '../../shared/errors.ts'
import { launcherArguments } from './arguments.ts'
import type { LaunchPlan } from './plan.ts'

/** Descriptors as the launcher sees them. */
const LOCK_FD = 3
const NOTIFY_FD = 4

export interface LauncherSpawn {
  /** The launcher and its arguments before ours. */
  readonly command: readonly string[]
  readonly plan: LaunchPlan
  /** The task's environment. */
  readonly env: Readonly<Record<string, string>>
  /** The service's end of the pipe for lines to it. */
  readonly notifyFd: number
  /** What launchers complain to. */
  readonly logFd: number
}

export interface Launcher {
  readonly pid: number
  /** Resolves with its exit code. */
  readonly exited: Promise<number>
}

/**
 * Starts a launcher. Throws the system's error (E2BIG ...) when it could not be started.
 *
 * The lock is ours before the launcher is, and passed on: nobody ever sees a launcher that is about to live as dead.
 */
export function spawnLauncher({ command, plan, env, notifyFd, logFd }: LauncherSpawn): Launcher {
  const lockFd = openSync(plan.task_dir, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    if (!tryLock(lockFd)) throw new Error(`the directory ${plan.task_dir} is locked: another launcher uses it`)
    const child = Bun.spawn([...command, ...launcherArguments(plan, { lock_fd: LOCK_FD, notify_fd: NOTIFY_FD })], {
      env: { ...env },
      detached: true,
      stdio: ['ignore', 'ignore', logFd, lockFd, notifyFd],
    })
    return { pid: child.pid, exited: child.exited }
  } finally {
    closeSync(lockFd)
  }
}

/** Asks the launcher of a task to end it; false while or when none listens. */
export function requestKill(taskDir: string): boolean {
  let fd: number
  try {
    fd = openSync(join(taskDir, 'kill'), constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    if (['ENOENT', 'ENXIO', 'ELOOP'].includes(systemCodeOf(error) ?? '')) return false
    throw error
  }
  try {
    writeSync(fd, 'k')
    return true
  } finally {
    closeSync(fd)
  }
}

/** Whether the launcher of a task lives. */
export function isLauncherAlive(taskDir: string): boolean {
  let fd: number
  try {
    fd = openSync(taskDir, constants.O_RDONLY | constants.O_DIRECTORY)
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false
    throw error
  }
  try {
    return !tryLock(fd)
  } finally {
    closeSync(fd) // and with it the lock, if it became ours
  }
}
