/** Makes a directory like one in another tree: with its name, permissions and owner. */
import { fchmodSync, fchownSync, mkdirSync, type Stats } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import type { WalkedDirectory } from './matching-files.ts'
import type { OpenDirectory } from './open-directory.ts'

/** Mode bits without those that would give the rights of an owner to others. */
export const PERMISSIONS = 0o777

/** The owner can always enter the directory and write into it. */
const OPEN_MODE = 0o700

/** The directory in `target`, to be closed. There may be one already. */
export function mirroredDirectory(target: OpenDirectory, { name, directory }: WalkedDirectory): OpenDirectory {
  makeDirectory(target.at(name))
  const made = target.child(name)
  if (made === undefined) throw new Error('a directory of the task was replaced while its files were moved')
  try {
    fchmodSync(made.fd, (directory.status.mode & PERMISSIONS) | OPEN_MODE)
    giveTo(made, directory.status)
    return made
  } catch (error) {
    made[Symbol.dispose]()
    throw error
  }
}

/** Only root can give directories away, and only then the workspace belongs to another user. */
export function giveTo({ fd }: OpenDirectory, { uid, gid }: Stats): void {
  if (process.getuid?.() === 0) fchownSync(fd, uid, gid)
}

/** Makes a directory, unless something is there. */
export function makeDirectory(path: string | Buffer): void {
  try {
    mkdirSync(path, { mode: OPEN_MODE })
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error
  }
}
