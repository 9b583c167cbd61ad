/**
 * Files with secrets in the workspace of a task. They are there before the program starts, and are removed once the
 * task has ended, so that no value outlives its task on disk.
 *
 * Another task with the same user may be in the workspace and replace a directory by a link. So each name is opened
 * relative to the descriptor of the directory before it, and no link is followed. A file is made anew (O_EXCL), and
 * belongs to the service until its value is complete. Names relative to a descriptor are `/proc/self/fd/N/name`, so
 * this needs Linux.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import type { SecretFile } from '../../shared/files/secret-values.ts'
import { SecretFault } from '../../shared/files/secrets-directory.ts'
import { shortened } from '../../shared/request/text.ts'
import type { TaskDir } from './task-dir.ts'
import { pathAt } from './workspace-path.ts'

/** Missing in node:fs; the same on all architectures. */
const O_PATH = 0o10000000

const DIRECTORY = constants.O_DIRECTORY | constants.O_NOFOLLOW
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** The owner may read it. */
const FILE_MODE = 0o400
const DIRECTORY_MODE = 0o700

/** The rights of an owner on a directory. */
const ALL_RIGHTS = 0o700

/**
 * Puts each value into its file, and makes the directories that lead there. `owner` is the user of the task, if that is
 * not the user of the service. Throws `SecretFault` for a place that is taken. Of a failure nothing is left but
 * directories.
 */
export function writeSecretFiles(dir: TaskDir, files: readonly SecretFile[], owner: number | undefined): void {
  for (const [i, file] of files.entries()) {
    try {
      writeSecretFile(dir, file, owner)
    } catch (error) {
      removeSecretFiles(
        dir,
        files.slice(0, i).map(({ names }) => names),
      )
      throw error
    }
  }
}

function writeSecretFile(
  { task_dir }: TaskDir,
  { variable, names, value }: SecretFile,
  owner: number | undefined,
): void {
  const at = `secrets.${shortened(variable)}.file`
  const shown = shortened(names.join('/'))
  let parent = openSync(task_dir, O_PATH | DIRECTORY)
  try {
    for (const [i, name] of ['workspace', ...names.slice(0, -1)].entries()) {
      const isNew = i > 0 && tryMkdir(pathAt(parent, name))
      const next = openSync(pathAt(parent, name), O_PATH | DIRECTORY)
      closeSync(parent)
      parent = next
      if (isNew && owner !== undefined) giveAway(parent, owner)
    }
    makeFile(parent, names.at(-1)!, value, owner)
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === 'EEXIST') throw new SecretFault(`${at}: ${shown} is there already`)
    if (code === 'ENOTDIR' || code === 'ELOOP') throw new SecretFault(`${at}: no directory leads to ${shown}`)
    throw error
  } finally {
    closeSync(parent)
  }
}

/** Gives a directory that the service has made to the user of the task. */
function giveAway(directory: number, owner: number): void {
  if (fstatSync(directory).uid === process.geteuid?.()) chownSync(`/proc/self/fd/${directory}`, owner, owner)
}

function tryMkdir(path: string): boolean {
  try {
    mkdirSync(path, { mode: DIRECTORY_MODE })
    return true
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false
    throw error
  }
}

function makeFile(parent: number, name: string, value: Buffer, owner: number | undefined): void {
  const path = pathAt(parent, name)
  const fd = openSync(path, NEW_FILE, FILE_MODE)
  try {
    for (let written = 0; written < value.length; ) written += writeSync(fd, value, written)
    if (owner !== undefined) fchownSync(fd, owner, owner)
  } catch (error) {
    unlinkSync(path)
    throw error
  } finally {
    closeSync(fd)
  }
}

/**
 * Removes what stands at the paths, whatever the task made of it; a directory stays. Returns the first error, after
 * trying all.
 */
export function removeSecretFiles(dir: TaskDir, paths: readonly (readonly string[])[]): unknown {
  let fault: unknown
  for (const names of paths) {
    try {
      removeSecretFile(dir, names)
    } catch (error) {
      fault ??= error
    }
  }
  return fault
}

/** Ignores files that the task has removed or replaced. */
const GONE: readonly string[] = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR']

function removeSecretFile({ task_dir }: TaskDir, names: readonly string[]): void {
  let parent: number | undefined
  try {
    parent = openSync(task_dir, O_PATH | DIRECTORY)
    for (const name of ['workspace', ...names.slice(0, -1)]) {
      giveRights(parent)
      const next = openSync(pathAt(parent, name), O_PATH | DIRECTORY)
      closeSync(parent)
      parent = next
    }
    giveRights(parent)
    unlinkSync(pathAt(parent, names.at(-1)!))
  } catch (error) {
    if (!GONE.includes(systemCodeOf(error) ?? '')) throw error
  } finally {
    if (parent !== undefined) closeSync(parent)
  }
}

/** A task with our user may have taken our rights to its directory; root needs none. */
function giveRights(directory: number): void {
  const { uid, mode } = fstatSync(directory)
  if (uid !== process.geteuid?.() || (mode & ALL_RIGHTS) === ALL_RIGHTS) return
  chmodSync(`/proc/self/fd/${directory}`, (mode & 0o7777) | ALL_RIGHTS)
}
