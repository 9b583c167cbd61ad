/** The state directory, the room on its disk, and the token. */
import { accessSync, constants, lstatSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import { ACCESS_OF_OTHERS } from '../../shared/http/token.ts'
import { ownPaths } from '../own-services/record.ts'
import { type Environment, stateDirPath } from '../own-services/state-dir.ts'
import { tokenFileFault } from '../own-services/token-file.ts'
import { type Finding, fine, wrong } from './finding.ts'

/** Free bytes and free inodes below which results and logs soon have no room. */
const MIN_FREE_BYTES = 1024 ** 3
const MIN_FREE_INODES = 10_000

export function lookAtFiles(env: Environment): Finding[] {
  const dir = stateDirPath(env)
  return [lookAtDirectory(dir), lookAtDisk(existing(dir)), lookAtToken(ownPaths(env).token)]
}

function lookAtDirectory(dir: string): Finding {
  const check = 'state directory'
  try {
    const stat = statSync(dir, { throwIfNoEntry: false })
    if (stat === undefined) {
      const parent = existing(dir)
      accessSync(parent, constants.W_OK | constants.X_OK)
      return fine(check, `${dir} is made by the first taskmill up`)
    }
    if (!stat.isDirectory()) return wrong(check, `${dir} is not a directory`, 'Move it away, or set XDG_STATE_HOME.')
    const user = process.getuid?.()
    if (user !== undefined && stat.uid !== user) {
      return wrong(
        check,
        `${dir} belongs to the user ${stat.uid}`,
        `Give it to yourself (chown), or set XDG_STATE_HOME.`,
      )
    }
    accessSync(dir, constants.W_OK | constants.X_OK)
    if ((stat.mode & ACCESS_OF_OTHERS) !== 0) return wrong(check, `others have access to ${dir}`, `chmod 700 ${dir}`)
    return fine(check, dir)
  } catch (error) {
    return wrong(
      check,
      `${dir} cannot be used: ${messageOf(error)}`,
      'Let your user write there, or set XDG_STATE_HOME.',
    )
  }
}

function lookAtDisk(path: string): Finding {
  const check = 'disk'
  try {
    const { bavail, bsize, files, ffree } = statfsSync(path)
    const freeBytes = bavail * bsize
    const room = `${Math.floor(freeBytes / 1024 ** 2)} MiB free at ${path}`
    const remedy = 'Make room, or set XDG_STATE_HOME to a directory on another disk.'
    if (freeBytes < MIN_FREE_BYTES) return wrong(check, `only ${room}`, remedy)
    // Some file systems have no fixed number of inodes and report 0.
    if (files > 0 && ffree < MIN_FREE_INODES) return wrong(check, `only ${ffree} inodes free at ${path}`, remedy)
    return fine(check, room)
  } catch (error) {
    return wrong(check, `cannot look at the disk of ${path}: ${messageOf(error)}`, 'Check the path and its mount.')
  }
}

function lookAtToken(path: string): Finding {
  const check = 'token'
  try {
    const fault = tokenFileFault(path)
    if (fault !== undefined) return wrong(check, fault.what, fault.remedy)
    const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined
    return fine(check, isThere ? path : `${path} is made by the first taskmill up`)
  } catch (error) {
    return wrong(check, `cannot look at ${path}: ${messageOf(error)}`, 'Mend the state directory first.')
  }
}

/** `path`, or the nearest directory above it that exists. */
function existing(path: string): string {
  let at = path
  while (statSync(at, { throwIfNoEntry: false }) === undefined && dirname(at) !== at) at = dirname(at)
  return at
}
