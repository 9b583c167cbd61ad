/**
 * Restores the owner's access to files of ours after a `chmod` by a task.
 *
 * A task that runs as our user may remove the owner's rights from a file of ours (`chmod 000`). Root ignores that; any
 * other user has to restore the rights first. This works on Linux only.
 */
import { chmodSync, closeSync, constants, fstatSync, openSync } from 'node:fs'

/** Refers to a file without opening it, so it needs no rights on the file. Bun does not export this constant. */
const O_PATH = 0o10_000_000

/**
 * Adds `rights` for the owner of the file at `path` and removes none. Does not follow a symbolic link. Returns false
 * when the file is not ours or cannot be reached.
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
    chmodSync(`/proc/self/fd/${fd}`, (mode & 0o7777) | rights) // the file that was checked, whatever `path` names by now
    return true
  } catch {
    return false
  } finally {
    closeSync(fd)
  }
}
