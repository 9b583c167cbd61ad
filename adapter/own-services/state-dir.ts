/**
 * The directory for data and logs of the services that the client starts: `$XDG_STATE_HOME/taskmill`, else
 * `~/.local/state/taskmill`, readable by its owner only. A lock in it keeps two clients from starting the same service.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { tryLock } from '../../shared/files/directory-lock.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The path of the directory. */
export function stateDirPath(env: Environment): string {
  const given = env.XDG_STATE_HOME
  // The XDG base directory specification ignores relative paths.
  const base = given && isAbsolute(given) ? given : join(env.HOME || homedir(), '.local', 'state')
  return join(base, 'taskmill')
}

/** The directory, created if missing. Throws the system's error. */
const stateDir = (env: Environment): string => privateDir(stateDirPath(env))

/** The directory of the service `name` in it. */
export const serviceDir = (env: Environment, name: string): string => privateDir(join(stateDir(env), name))

export function privateDir(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700) // also if it existed, and whatever the umask is
  return path
}

/** Milliseconds between two tries to take the lock. A blocking `flock` would block the event loop. */
const LOCK_RETRY_MS = 50

/**
 * Runs `start` while no other client of this user starts anything. Without it, several clients that find no service would
 * each start one, and all but one would fail. The lock ends with its holder. If the lock cannot be created, or is not free
 * within `timeoutMs`, `start` runs anyway.
 */
export async function onePerUser<T>(env: Environment, timeoutMs: number, start: () => Promise<T>): Promise<T> {
  let fd: number
  try {
    fd = openSync(join(stateDir(env), 'start.lock'), 'a', 0o600)
  } catch {
    return start() // it needs the directory, too, and reports the fault
  }
  try {
    const end = performance.now() + timeoutMs
    while (!tryLock(fd) && performance.now() < end) await Bun.sleep(LOCK_RETRY_MS)
    return await start()
  } finally {
    closeSync(fd)
  }
}
