/** Protects files with secrets from other users of the machine. */

import { chmodSync, lstatSync, statSync } from 'node:fs'
import { ACCESS_OF_OTHERS } from '../http/token.ts'
import type { Log } from '../logs/log.ts'

/** Mode bits with which others can list a directory or write in it. Without them they can only pass through. */
const OTHERS_LOOK_OR_WRITE = 0o066

/**
 * Removes other users' access to `files`, which a restored backup may have. A data directory that others can list or write
 * in only gets a warning, because it may be any directory (`/tmp`).
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

/** Removes other users' access. False if that is not allowed. */
function tighten(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined || !stat.isFile() || (stat.mode & ACCESS_OF_OTHERS) === 0) return true
  try {
    chmodSync(path, stat.mode & 0o700)
    return true
  } catch {
    return false
  }
}
