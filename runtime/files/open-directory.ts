/**
 * An open directory of a task, whose entries are named relative to its descriptor.
 *
 * Another task with the same user may replace a directory by a link at any moment. So every directory is opened by one
 * name, relative to the descriptor of the one before it and never through a link: no path can lead out of the tree.
 * Names are bytes, as not all are valid text. `/proc/self/fd/N/name` names an entry, so this needs Linux.
 *
 * Directories are read some hundred names at a time, since the runtime would read one with 400,000 entries as a whole.
 */
import { ptr } from 'bun:ffi'
import { chmodSync, closeSync, constants, fstatSync, openSync, readdirSync, type Stats } from 'node:fs'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { loadLibc } from '../../shared/process/libc.ts'

/** Missing in node:fs; the same on all architectures. */
const O_PATH = 0o10000000
const NO_LINK = constants.O_NOFOLLOW

/** The mode with which the service can read a directory and move its entries. */
const OPEN_MODE = 0o700

/** An entry as the directory describes it. `kind` is only a hint: another entry may be there by now. */
export interface Entry {
  readonly name: Buffer
  readonly kind: 'file' | 'directory' | 'other' | 'unknown'
}

/** Errors that say that there is no directory, or none any more. */
const ABSENT: readonly string[] = ['ENOENT', 'ENOTDIR', 'ELOOP']
const CLOSED: readonly string[] = ['EACCES', 'EPERM']

export class OpenDirectory implements Disposable {
  readonly fd: number
  readonly status: Stats

  private constructor(fd: number, status: Stats) {
    this.fd = fd
    this.status = status
  }

  /** The directory at `path`, which is not followed if it is a link. `isToOpen`: also if its mode forbids that. */
  static open(path: string | Buffer, isToOpen = false): OpenDirectory {
    const named = openSync(path, O_PATH | constants.O_DIRECTORY | NO_LINK)
    try {
      const itself = `/proc/self/fd/${named}`
      const status = fstatSync(named)
      if (isToOpen && (status.mode & OPEN_MODE) !== OPEN_MODE && status.uid === process.getuid?.()) {
        chmodSync(itself, OPEN_MODE)
      }
      return new OpenDirectory(openSync(itself, constants.O_RDONLY | constants.O_DIRECTORY), status)
    } finally {
      closeSync(named)
    }
  }

  /** The directory `name` in it. Undefined if there is none, or with `isToOpen`, if it cannot be opened either. */
  child(name: Buffer, isToOpen = false): OpenDirectory | undefined {
    try {
      return OpenDirectory.open(this.at(name), isToOpen)
    } catch (error) {
      const code = systemCodeOf(error) ?? ''
      if (ABSENT.includes(code) || (isToOpen && CLOSED.includes(code))) return undefined
      throw error
    }
  }

  /** The path of `name` in it. System calls that follow the last name must not get it. */
  at(name: Buffer | string): Buffer {
    return Buffer.concat([Buffer.from(`/proc/self/fd/${this.fd}/`), Buffer.from(name)])
  }

  /** Calls `look` with a descriptor of the entry, without effect on pipes and devices. Undefined if it is not there. */
  look<T>(name: Buffer, look: (itself: string, status: Stats) => T): T | undefined {
    let fd: number
    try {
      fd = openSync(this.at(name), O_PATH | NO_LINK)
    } catch (error) {
      if (ABSENT.includes(systemCodeOf(error) ?? '')) return undefined
      throw error
    }
    try {
      return look(`/proc/self/fd/${fd}`, fstatSync(fd))
    } finally {
      closeSync(fd)
    }
  }

  /** The entries, some hundred at a time. None if the directory was removed meanwhile. */
  *entries(): Generator<readonly Entry[], void, void> {
    const read = getdents()
    if (read === null) return yield entriesAtOnce(this.fd)
    for (;;) {
      const length = Number(read(this.fd, ptr(buffer), buffer.length))
      if (length < 0) this.#checkRemoved()
      if (length <= 0) return
      yield parsedEntries(length)
    }
  }

  /** Throws if the directory was not removed. The call that failed has no error number here, so another one is asked. */
  #checkRemoved(): void {
    try {
      readdirSync(this.at('.'))
    } catch (error) {
      if (ABSENT.includes(systemCodeOf(error) ?? '')) return
      throw new Error(`cannot read a directory of the task: ${faultMessage(error)}`, { cause: error })
    }
    throw new Error('cannot read a directory of the task')
  }

  [Symbol.dispose](): void {
    closeSync(this.fd)
  }
}

/** The message of an error, without the paths of descriptors: these tell a reader nothing. */
export const faultMessage = (error: unknown): string => messageOf(error).replace(/ '\/proc\/self\/fd\/.*$/s, '')

/** Bytes of entries that are read at once: some 800 short names. */
const ENTRIES_BYTES = 32 * 1024

/** Shared by all: what is read is taken out of it at once. */
const buffer = Buffer.alloc(ENTRIES_BYTES)

const load = () => loadLibc({ getdents64: { args: ['i32', 'ptr', 'u64'], returns: 'i64' } } as const)
let libc: ReturnType<typeof load> | undefined

/** The system call, or null where the C library does not have it. */
function getdents() {
  if (libc === undefined) libc = load()
  return libc?.getdents64 ?? null
}

/** `struct linux_dirent64`: inode (8 bytes), offset (8), length of the record (2), type (1), the name with a NUL. */
function parsedEntries(length: number): Entry[] {
  const entries: Entry[] = []
  for (let at = 0; at < length; at += buffer.readUInt16LE(at + 16)) {
    const name = Buffer.from(buffer.subarray(at + 19, buffer.indexOf(0, at + 19)))
    if (isDot(name)) continue
    entries.push({ name, kind: KINDS[buffer[at + 18]!] ?? 'other' })
  }
  return entries
}

/** DT_UNKNOWN, DT_DIR, DT_REG. */
const KINDS: Readonly<Record<number, Entry['kind']>> = { 0: 'unknown', 4: 'directory', 8: 'file' }

const DOT = '.'.charCodeAt(0)
const isDot = (name: Buffer): boolean =>
  name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT))

const entriesAtOnce = (fd: number): Entry[] =>
  readdirSync(`/proc/self/fd/${fd}`, { encoding: 'latin1' }).map((name) => ({
    name: Buffer.from(name, 'latin1'),
    kind: 'unknown',
  }))
