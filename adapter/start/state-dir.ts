/**
 * Where services that the client starts keep their data and logs: `$XDG_STATE_HOME/taskmill`, else
 * `~/.local/state/taskmill`, readable by its owner alone. Also what keeps two clients from starting the same service.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { tryLock } from '../../shared/directory-lock.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The directory; made if it is not there. Throws the system's error. */
function stateDir(env: Environment): string {
  const given = env.XDG_STATE_HOME
  // The XDG base directory specification says that a relative path is to be ignored.
  const base = given && isAbsolute(given) ? given : join(env.HOME || homedir(), '.local', 'state')
  return privateDir(join(base, 'taskmill'))
}

/** The directory of one service, `name`, in there. */
export const serviceDir = (env: Environment, name: string): string => privateDir(join(stateDir(env), name))

function privateDir(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700) // whoever made it, and whatever the umask is
  return path
}

/** Milliseconds between two tries to get the lock. The kernel could wait for us, but would hold the event loop meanwhile. */
const LOCK_RETRY_MS = 50

/**
 * Runs `start` while no other client of this user starts anything: several that come at the same time, and all find
 * nobody there, would otherwise start several services of which all but one fail. The lock ends with its holder. Where
 * there is no place for it, and after `patienceMs`, `start` runs all the same: then the services themselves have to sort
 * it out.
 */
export async function onePerUser<T>(env: Environment, patienceMs: number, start: () => Promise<T>): Promise<T> {
  let fd: number
  try {
    fd = openSync(join(stateDir(env), 'start.lock'), 'a', 0o600)
  } catch {
    return start() // what needs the directory says what is wrong with it
  }
  try {
    const end = performance.now() + patienceMs
    while (!tryLock(fd) && performance.now() < end) await Bun.sleep(LOCK_RETRY_MS)
    return await start()
  } finally {
    closeSync(fd)
  }
}
