/**
 * Walks a file or a directory of an ended task that is handed to another one.
 *
 * It is read through descriptors and no link is followed, as another task with the same user may still be in it. Links,
 * pipes, sockets and devices of a directory are left out. The walk needs no recursion and holds a descriptor for each level.
 * Entries come in the order of the bytes of their names.
 */
import { closeSync, fstatSync, type Stats } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import { openToRead } from './file-copy.ts'
import { MAX_LEVELS } from './matching-files.ts'
import type { OpenDirectory } from './open-directory.ts'

/** Permissions of a copy: without setuid, setgid and sticky bits. */
export const PERMISSIONS = 0o777

/** The owner of a copied directory can always enter it and write into it. */
export const OPEN_MODE = 0o700

/** Entries that are handled without a pause of the event loop. */
const ENTRIES_PER_TURN = 64

/** The text of a `CopyFault` for a missing file. */
export const MISSING = 'is not there (a task with outputs keeps only what they match)'

/** The same for a directory of which an entry went meanwhile: what is left is not what the task asked for. */
const REMOVED = 'was removed meanwhile, or a part of it'

/** Why a source cannot be handed over; completes a sentence that begins with the source. */
export class CopyFault extends Error {
  override name = 'CopyFault'
}

/** What all inputs of one task may have together, and what they have so far. */
export class CopyAmount {
  /** Files and directories so far. Reports count the files only. */
  #entries = 0
  files = 0
  bytes = 0
  readonly #limits: { readonly files: number; readonly bytes: number }

  constructor(limits: { readonly files: number; readonly bytes: number }) {
    this.#limits = limits
  }

  addDirectory(): void {
    if (++this.#entries > this.#limits.files) throw this.#tooMuch('files')
  }

  /** `size` is looked at before it is copied. */
  addFile(size: number): void {
    this.addDirectory()
    this.files++
    if (this.bytes + size > this.#limits.bytes) throw this.#tooMuch('bytes')
  }

  addBytes(bytes: number): void {
    this.bytes += bytes
    if (this.bytes > this.#limits.bytes) throw this.#tooMuch('bytes')
  }

  /** Throws if a directory has more entries than may still be copied. */
  checkEntries(count: number): void {
    if (this.#entries + count > this.#limits.files) throw this.#tooMuch('files')
  }

  #tooMuch(kind: 'files' | 'bytes'): CopyFault {
    const what = kind === 'files' ? 'files and directories' : 'bytes'
    return new CopyFault(
      `has too much: all inputs of a task may have ${this.#limits[kind]} ${what} (--max-input-${kind})`,
    )
  }
}

export interface WalkSettings {
  /** The user of the source, who must own each file: a task may have linked a file of another user. */
  readonly sourceUid: number
  /** Whoever reads a file adds its bytes. */
  readonly amount: CopyAmount
  /** Called often. What it throws ends the walk. */
  readonly check: () => void
}

export type TreeStep =
  | { readonly kind: 'enter'; readonly name: Buffer; readonly mode: number }
  | FileStep
  /** Leaves the directory that was entered last. */
  | { readonly kind: 'leave'; readonly name: Buffer; readonly mode: number }

export interface FileStep {
  readonly kind: 'file'
  readonly name: Buffer
  readonly mode: number
  /** Open for reading until the next step. */
  readonly fd: number
  readonly size: number
  /** Changes with the content, as long as the clock of the kernel moves between two changes. */
  readonly version: string
}

export type TreeWalk = AsyncGenerator<TreeStep, void, void>

/** Walks the entry `name` of `source`, whose steps get the name `as`. Throws `CopyFault`. */
export async function* walkEntry(source: OpenDirectory, name: Buffer, as: Buffer, settings: WalkSettings): TreeWalk {
  const kind = source.look(name, (_, status) => kindOf(status))
  if (kind === undefined) throw new CopyFault(MISSING)
  if (kind === 'symlink') throw new CopyFault('is a symlink, which is not followed')
  if (kind === 'other') throw new CopyFault('is neither a file nor a directory')
  if (kind === 'file') return yield* fileStep(source, name, as, settings)
  using directory = source.child(name)
  if (directory === undefined) throw new CopyFault('was replaced meanwhile')
  yield* walkDirectory(directory, as, settings)
}

/** A level of the walk. */
interface Level {
  readonly source: OpenDirectory
  readonly name: Buffer
  readonly mode: number
  /** With a character for each byte, in the order of their bytes, the last first. */
  readonly names: string[]
}

/** Walks all of an open directory, which the caller closes. */
export async function* walkDirectory(top: OpenDirectory, as: Buffer, settings: WalkSettings): TreeWalk {
  const levels: Level[] = []
  const enter = (source: OpenDirectory, name: Buffer): Level => {
    const level = { source, name, mode: (source.status.mode | OPEN_MODE) & PERMISSIONS, names: [] }
    levels.push(level)
    settings.amount.addDirectory()
    return level
  }
  const close = ({ source }: Level) => {
    if (source !== top) source[Symbol.dispose]()
  }
  try {
    let entered: Level | undefined = enter(top, as)
    for (let count = 1; ; count++) {
      if (entered !== undefined) {
        yield { kind: 'enter', name: entered.name, mode: entered.mode }
        await readNames(entered, settings)
        entered = undefined
      }
      if (count % ENTRIES_PER_TURN === 0) await nextTurn()
      settings.check()
      const level = levels.at(-1)!
      const next = level.names.pop()
      if (next === undefined) {
        close(levels.pop()!)
        yield { kind: 'leave', name: level.name, mode: level.mode }
        if (levels.length === 0) return
        continue
      }
      const name = Buffer.from(next, NAME_ENCODING)
      const kind = level.source.look(name, (_, status) => kindOf(status))
      if (kind === undefined) throw new CopyFault(REMOVED)
      if (kind === 'file') yield* fileStep(level.source, name, name, settings)
      else if (kind === 'directory') {
        if (levels.length > MAX_LEVELS) throw new CopyFault(`is more than ${MAX_LEVELS} directories deep`)
        const inner = level.source.child(name)
        if (inner === undefined) throw new CopyFault(REMOVED)
        entered = enter(inner, name)
      }
    }
  } finally {
    for (const level of levels) close(level)
  }
}

const NAME_ENCODING = 'latin1'

/** A directory with too many entries is not read to its end. Of a removed one, nobody knows what it had. */
async function readNames({ source, names }: Level, { amount, check }: WalkSettings): Promise<void> {
  for (const entries of source.entries()) {
    check()
    for (const { name, kind } of entries) if (kind !== 'other') names.push(name.toString(NAME_ENCODING))
    amount.checkEntries(names.length)
    await nextTurn()
  }
  if (fstatSync(source.fd).nlink === 0) throw new CopyFault(REMOVED)
  names.sort().reverse()
}

async function* fileStep(
  source: OpenDirectory,
  name: Buffer,
  as: Buffer,
  { sourceUid, amount }: WalkSettings,
): TreeWalk {
  const opened = source.look(name, (itself, status) => {
    if (!status.isFile()) throw new CopyFault('was replaced meanwhile')
    if (status.uid !== sourceUid && sourceUid !== process.getuid?.()) throw new CopyFault('has a file of another user')
    amount.addFile(status.size)
    return { status, fd: openToRead(itself) }
  })
  if (opened === undefined) throw new CopyFault(REMOVED)
  const { status, fd } = opened
  try {
    yield { kind: 'file', name: as, mode: status.mode & PERMISSIONS, fd, size: status.size, version: versionOf(status) }
  } finally {
    closeSync(fd)
  }
}

/** No program can set the time of the last change (`ctime`). */
export const versionOf = ({ ino, size, mtimeMs, ctimeMs }: Stats): string => [ino, size, mtimeMs, ctimeMs].join(' ')

/** The `CopyFault` for what a task did to its files. */
export function sourceFault(error: unknown): unknown {
  const code = systemCodeOf(error) ?? ''
  if (code === 'EACCES' || code === 'EPERM')
    return new CopyFault('cannot be read by the service: its mode forbids that')
  if (code === 'EAGAIN') return new CopyFault('is leased by a program')
  return error
}

function kindOf(status: Stats): 'file' | 'directory' | 'symlink' | 'other' {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'directory'
  return status.isSymbolicLink() ? 'symlink' : 'other'
}
