/**
 * What is ours and was closed to us: whoever runs as our user may take its owner's rights away from a file (`chmod 000`).
 * That binds nobody who is root, and us otherwise, until we give them back. On Linux alone; elsewhere it stays closed.
 */
import { chmodSync, closeSync, constants, fstatSync, openSync } from 'node:fs'

/** Reaches a file without opening it, so no rights on it are needed. Bun has no name for it. */
const O_PATH = 0o10_000_000

/**
 * Gives its owner `rights` on what is at `path`, and takes none away; a link there is not followed. False when it is not
 * ours, or out of reach.
 */
export function giveOwner(path: string, rights: number): boolean {
  if (process.platform !== 'linux') return false
  let fd: number
  try {
    fd = openSync(path, O_PATH | constants.O_NOFOLLOW)
  } catch {
    return false
  }
  try {
    const { uid, mode } = fstatSync(fd)
    if (uid !== process.geteuid?.()) return false
    chmodSync(`/proc/self/fd/${fd}`, (mode & 0o7777) | rights) // the very file that was looked at
    return true
  } catch {
    return false
  } finally {
    closeSync(fd)
  }
}
