/**
 * Changes a configuration file of a host.
 *
 * The old content is kept beside the file (`NAME.before-taskmill`). The new content goes to a new file, which is synced and
 * renamed, with the mode and the owner of the old one. A link is followed, so that the file behind it changes. If another
 * program writes meanwhile, as hosts do, the edit is made again with the new content.
 */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import { syncDirectoryNow } from '../../shared/files/atomic-file.ts'
import { isWithin } from '../../shared/files/is-within.ts'
import { HostFileFault } from './fault.ts'

/** Bytes of a file. Hosts that keep histories in it have some megabytes. */
export const MAX_FILE_BYTES = 32 * 1024 * 1024

/** Edits before we give up, if another program writes the file each time. */
const MAX_EDITS = 5

export interface HostFile {
  readonly path: string
  /** A link may not lead out of this directory: the file is that of a project, whose links others may have made. */
  readonly within: string | undefined
  /** Mode of a new file. */
  readonly mode: number
  /** Whether it gets a secret: others lose their rights to it. */
  readonly isSecret?: boolean
}

export interface Change {
  readonly isChanged: boolean
  /** The old content; undefined if there was none. */
  readonly backup: string | undefined
}

/** Whether `edit` would change the file. Changes nothing. Throws `HostFileFault`. */
export function wouldChange(file: HostFile, edit: (text: string) => string): boolean {
  const { text } = contentOf(targetOf(file))
  return named(file.path, () => edit(text)) !== text
}

/** Edits the file. Throws `HostFileFault`; the file is as it was then. */
export function change(file: HostFile, edit: (text: string) => string): Change {
  const target = targetOf(file)
  for (let edits = 1; ; edits++) {
    const { text, stat } = contentOf(target)
    const edited = named(file.path, () => edit(text))
    if (edited === text) return { isChanged: false, backup: undefined }
    if (stat === undefined) mkdirSync(dirname(target), { recursive: true })
    const mode = stat?.mode ?? file.mode
    const aside = writeAside(target, edited, stat, file.isSecret ? mode & OWN_RIGHTS : mode)
    if (isUnchanged(target, text, stat)) {
      const backup = stat === undefined ? undefined : keep(target, text, stat)
      renameSync(aside, target)
      syncDirectoryNow(dirname(target))
      return { isChanged: true, backup }
    }
    unlinkSync(aside)
    if (edits === MAX_EDITS) {
      throw new HostFileFault(`${file.path} changes all the time: close the program that writes it, and try again`)
    }
  }
}

/** The path of the file itself, without links. */
function targetOf({ path, within }: HostFile): string {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
    if (within !== undefined) refuseOutside(path, existingParent(path), within)
    return path
  }
  let target: string
  try {
    target = realpathSync(path)
  } catch (error) {
    throw new HostFileFault(`${path} is a link that cannot be followed: ${messageOf(error)}`)
  }
  if (within !== undefined) refuseOutside(path, target, within)
  return target
}

function existingParent(path: string): string {
  const parent = dirname(path)
  if (lstatSync(parent, { throwIfNoEntry: false }) === undefined) return existingParent(parent)
  return realpathSync(parent)
}

function refuseOutside(path: string, real: string, within: string): void {
  if (isWithin(real, realpathSync(within))) return
  throw new HostFileFault(`${path} leads to ${real}, out of the project: it is left as it is (name a file with --file)`)
}

interface Content {
  readonly text: string
  /** Undefined if there is no file. */
  readonly stat: Stats | undefined
}

function contentOf(path: string): Content {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return { text: '', stat: undefined }
  if (!found.isFile()) throw new HostFileFault(`${path} is not a file`)
  if (found.size > MAX_FILE_BYTES) throw new HostFileFault(`${path} has more than ${MAX_FILE_BYTES} bytes`)
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path))
    return { text, stat: found }
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8' : messageOf(error)
    throw new HostFileFault(`cannot read ${path}: ${why}; it is left as it is`)
  }
}

function isUnchanged(path: string, text: string, stat: Stats | undefined): boolean {
  const now = contentOf(path)
  return (now.stat === undefined) === (stat === undefined) && now.text === text
}

function keep(target: string, text: string, stat: Stats): string {
  const backup = `${target}.before-taskmill`
  renameSync(writeAside(backup, text, stat, stat.mode), backup)
  return backup
}

/** Mode bits of the owner. */
const OWN_RIGHTS = 0o700

/** Writes a new file beside `path`, with the owner of `stat`. Returns its path. */
function writeAside(path: string, text: string, stat: Stats | undefined, mode: number): string {
  const aside = join(dirname(path), `.${basename(path)}.${crypto.randomUUID()}`)
  const fd = openSync(aside, 'wx', 0o600)
  try {
    writeFileSync(fd, text)
    const own = fstatSync(fd)
    if (stat !== undefined && (own.uid !== stat.uid || own.gid !== stat.gid)) fchownSync(fd, stat.uid, stat.gid)
    fchmodSync(fd, mode & 0o777)
    fsyncSync(fd)
  } catch (error) {
    unlinkSync(aside)
    throw error
  } finally {
    closeSync(fd)
  }
  return aside
}

/** Names the file in a fault of its content. */
function named<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof HostFileFault)
      throw new HostFileFault(`cannot edit ${path}: ${error.message}; it is left as it is`)
    throw error
  }
}
