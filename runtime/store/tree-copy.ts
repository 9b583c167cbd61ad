/**
 * Copies a file or a directory of an ended task, for another task.
 *
 * The source is read through descriptors and no link is followed, as another task with the same user may still be in it. The
 * target lies in a directory that only the service can enter. Links, pipes, sockets and devices of a directory are left out.
 * The walk needs no recursion and holds two descriptors for each level.
 *
 * The hash of a file is that of its bytes. The hash of a directory is that of a list: for each entry, in the order of the
 * bytes of their names, `file` or `directory`, its permissions in octal, its own hash and its name, with spaces between them
 * and a NUL at the end.
 */
import { closeSync, fchmodSync, fchownSync, fstatSync, mkdirSync, type Stats } from 'node:fs'
import { systemCodeOf } from '../../shared/errors.ts'
import { nextTurn } from '../../shared/steps.ts'
import { type Clone, copyOpenFile, openToRead } from './file-copy.ts'
import { MAX_LEVELS } from './matching-files.ts'
import type { OpenDirectory } from './open-directory.ts'

/** Permissions of a copy: without setuid, setgid and sticky bits. */
const PERMISSIONS = 0o777
const OPEN_MODE = 0o700

/** Entries that are handled without a pause of the event loop. */
const ENTRIES_PER_TURN = 64

/** The text of a `CopyFault` for a missing file. */
export const MISSING = 'is not there (a task with outputs keeps only what they match)'

/** The same for a directory of which an entry went while it was copied: what is left is not what the task asked for. */
const REMOVED = 'was removed meanwhile, or a part of it'

/** Why a source cannot be copied; completes a sentence that begins with the source. */
export class CopyFault extends Error {
  override name = 'CopyFault'
}

/** What all copies for one task may have together, and what they have so far. */
export class CopyAmount {
  /** Of files and directories, of which only files count in what is reported. */
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

export interface CopySettings {
  /** User and group of the copies; undefined for those of the service. */
  readonly owner: number | undefined
  /** The user of the source, who must own each file: a task may have linked a file of another user. */
  readonly sourceUid: number
  readonly amount: CopyAmount
  readonly clone: Clone
  /** Called often. What it throws ends the copy. */
  readonly check: () => void
}

export interface Copied {
  readonly sha256: string
  readonly files: number
  readonly bytes: number
}

/** Copies the entry `name` of `source` to `as` in `target`. Throws `CopyFault`; then the target is not complete. */
export async function copyEntry(
  source: OpenDirectory,
  name: Buffer,
  target: OpenDirectory,
  as: Buffer,
  settings: CopySettings,
): Promise<Copied> {
  const kind = source.look(name, (_, status) => kindOf(status))
  if (kind === undefined) throw new CopyFault(MISSING)
  if (kind === 'symlink') throw new CopyFault('is a symlink, which is not followed')
  if (kind === 'other') throw new CopyFault('is neither a file nor a directory')
  if (kind === 'directory') {
    using directory = openChild(source, name)
    if (directory === undefined) throw new CopyFault('was replaced meanwhile')
    return await copyDirectory(directory, target, as, settings)
  }
  return await counted(settings, async () => (await copyFileEntry(source, name, target, as, settings)).sha256)
}

/** Copies all of an open directory to the new directory `as` in `target`. */
export const copyDirectory = (
  top: OpenDirectory,
  target: OpenDirectory,
  as: Buffer,
  settings: CopySettings,
): Promise<Copied> => counted(settings, () => copyLevels(top, target, as, settings))

async function counted({ amount }: CopySettings, copy: () => Promise<string>): Promise<Copied> {
  const { files, bytes } = amount
  const sha256 = await copy()
  return { sha256, files: amount.files - files, bytes: amount.bytes - bytes }
}

/** A level of the walk. */
interface Level {
  readonly source: OpenDirectory
  readonly target: OpenDirectory
  readonly name: Buffer
  /** With a character for each byte, in the order of their bytes, the last first. */
  readonly names: string[]
  readonly list: Bun.CryptoHasher
}

/** Returns the hash of the directory. */
async function copyLevels(
  top: OpenDirectory,
  target: OpenDirectory,
  as: Buffer,
  settings: CopySettings,
): Promise<string> {
  const levels: Level[] = []
  const enter = async (source: OpenDirectory, into: OpenDirectory, name: Buffer) => {
    settings.amount.addDirectory()
    mkdirSync(into.at(name), { mode: OPEN_MODE })
    const level = { source, target: into.child(name)!, name, names: [], list: new Bun.CryptoHasher('sha256') }
    levels.push(level)
    await readNames(level, settings)
  }
  const leave = () => {
    const left = levels.pop()!
    const mode = finish(left.target.fd, left.source.status.mode | OPEN_MODE, settings.owner)
    const sha256 = left.list.digest('hex')
    left.target[Symbol.dispose]()
    if (left.source !== top) left.source[Symbol.dispose]()
    return { ...left, mode, sha256 }
  }
  try {
    await enter(top, target, as)
    for (let count = 1; ; count++) {
      if (count % ENTRIES_PER_TURN === 0) await nextTurn()
      settings.check()
      const level = levels.at(-1)!
      const next = level.names.pop()
      if (next === undefined) {
        const { name: left, mode, sha256 } = leave()
        const outer = levels.at(-1)
        if (outer === undefined) return sha256
        outer.list.update(lineOf('directory', mode, sha256, left))
        continue
      }
      const name = Buffer.from(next, NAME_ENCODING)
      const kind = level.source.look(name, (_, status) => kindOf(status))
      if (kind === undefined) throw new CopyFault(REMOVED)
      if (kind === 'file') {
        const { mode, sha256 } = await copyFileEntry(level.source, name, level.target, name, settings)
        level.list.update(lineOf('file', mode, sha256, name))
      } else if (kind === 'directory') {
        if (levels.length > MAX_LEVELS) throw new CopyFault(`is more than ${MAX_LEVELS} directories deep`)
        const inner = openChild(level.source, name)
        if (inner === undefined) throw new CopyFault(REMOVED)
        await enter(inner, level.target, name)
      }
    }
  } finally {
    for (const { source, target: open } of levels) {
      open[Symbol.dispose]()
      if (source !== top) source[Symbol.dispose]()
    }
  }
}

const NAME_ENCODING = 'latin1'

/** A directory with too many entries is not read to its end. Of a removed one, nobody knows what it had. */
async function readNames({ source, names }: Level, { amount, check }: CopySettings): Promise<void> {
  for (const entries of source.entries()) {
    check()
    for (const { name, kind } of entries) if (kind !== 'other') names.push(name.toString(NAME_ENCODING))
    amount.checkEntries(names.length)
    await nextTurn()
  }
  if (fstatSync(source.fd).nlink === 0) throw new CopyFault(REMOVED)
  names.sort().reverse()
}

const lineOf = (kind: string, mode: number, sha256: string, name: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${kind} ${mode.toString(8)} ${sha256} `), name, Buffer.of(0)])

async function copyFileEntry(
  source: OpenDirectory,
  name: Buffer,
  target: OpenDirectory,
  as: Buffer,
  { owner, sourceUid, amount, clone, check }: CopySettings,
): Promise<{ sha256: string; mode: number }> {
  const opened = source.look(name, (itself, status) => {
    if (!status.isFile()) throw new CopyFault('was replaced meanwhile')
    if (status.uid !== sourceUid && sourceUid !== process.getuid?.()) throw new CopyFault('has a file of another user')
    amount.addFile(status.size)
    return { status, from: readable(itself) }
  })
  if (opened === undefined) throw new CopyFault(REMOVED)
  const { status, from } = opened
  try {
    const onBytes = (bytes: number) => {
      amount.addBytes(bytes)
      check()
    }
    const { fd, sha256 } = await copyOpenFile({ from, to: target.at(as), clone, onBytes })
    try {
      return { sha256, mode: finish(fd, status.mode, owner) }
    } finally {
      closeSync(fd)
    }
  } finally {
    closeSync(from)
  }
}

function readable(path: string): number {
  try {
    return openToRead(path)
  } catch (error) {
    throw faultOf(error)
  }
}

function openChild(source: OpenDirectory, name: Buffer): OpenDirectory | undefined {
  try {
    return source.child(name)
  } catch (error) {
    throw faultOf(error)
  }
}

function faultOf(error: unknown): unknown {
  const code = systemCodeOf(error) ?? ''
  if (code === 'EACCES' || code === 'EPERM')
    return new CopyFault('cannot be read by the service: its mode forbids that')
  if (code === 'EAGAIN') return new CopyFault('is leased by a program')
  return error
}

/** Owner first: a change of the owner clears bits of the mode. Returns the permissions. */
function finish(fd: number, mode: number, owner: number | undefined): number {
  const permissions = mode & PERMISSIONS
  if (owner !== undefined) fchownSync(fd, owner, owner)
  fchmodSync(fd, permissions)
  return permissions
}

function kindOf(status: Stats): 'file' | 'directory' | 'symlink' | 'other' {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'directory'
  return status.isSymbolicLink() ? 'symlink' : 'other'
}
