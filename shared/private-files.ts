/** Files that hold secrets, kept from other users of the machine. */
import { chmodSync, lstatSync, statSync } from 'node:fs'
import type { Log } from './log.ts'

/** Rights of the group and of all others. */
const OTHERS = 0o077

/** Rights of the group and of all others to list a directory, or to write in it. Passing through shows no names. */
const OTHERS_LOOK_OR_WRITE = 0o066

/**
 * Takes the rights of other users from those of `files` that exist: a restored backup may be readable for all. A data
 * directory that others may list or write in is only told of, as it may be any directory (`/tmp`, say).
 */
export function keepPrivate(dataDir: string, files: readonly string[], log: Log): void {
  const open = files.filter((path) => !tighten(path))
  if (open.length > 0)
    log.warn('other users can read files with secrets, which belong to somebody else', { files: open })
  if ((statSync(dataDir).mode & OTHERS_LOOK_OR_WRITE) === 0) return
  log.warn(`other users can look into the data directory: chmod 700 it, or choose another with --data-dir`, {
    data_dir: dataDir,
  })
}

/** Whether others have no right to the file, by now. */
function tighten(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined || !stat.isFile() || (stat.mode & OTHERS) === 0) return true
  try {
    chmodSync(path, stat.mode & 0o700)
    return true
  } catch {
    return false
  }
}
