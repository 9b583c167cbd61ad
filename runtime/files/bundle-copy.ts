/**
 * Writes the file or the directory of a staged bundle into a workspace.
 *
 * The bundle came from elsewhere, so every head is checked: a name is one name, names of a directory ascend and so are there
 * once, sizes fit, and nothing follows the outermost entry. All is written by descriptors below the target.
 */
import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { nextTurn } from '../../shared/process/steps.ts'
import { BUNDLE_START, MAX_ENTRY_BYTES } from './bundle.ts'
import { copyRange } from './file-copy.ts'
import { MAX_LEVELS } from './matching-files.ts'
import type { OpenDirectory } from './open-directory.ts'
import { type Copied, counted } from './tree-copy.ts'
import { type CopyAmount, CopyFault } from './tree-walk.ts'
import { TreeWriter } from './tree-writer.ts'

export interface BundleCopySettings {
  /** User and group of the copies; undefined for those of the service. */
  readonly owner: number | undefined
  readonly amount: CopyAmount
  /** Called often. What it throws ends the copy. */
  readonly check: () => void
}

export interface StagedBundle {
  /** Open for reading. */
  readonly fd: number
  readonly sha256: string
}

/** Entries that are written without a pause of the event loop. */
const ENTRIES_PER_TURN = 64

/** Writes the bundle to `as` in `target`. Throws `CopyFault`; then the target is not complete. */
export async function copyBundle(
  { fd, sha256 }: StagedBundle,
  target: OpenDirectory,
  as: Buffer,
  settings: BundleCopySettings,
): Promise<Copied> {
  const { owner, amount } = settings
  using writer = new TreeWriter(target, owner)
  return await counted(amount, async () => {
    const bundle = new BundleReader(fd)
    await writeEntries(bundle, writer, as, settings)
    bundle.checkEnd()
    if (bundle.sha256 !== sha256) throw new CopyFault('is damaged: its content has another hash')
    return writer.sha256
  })
}

async function writeEntries(
  bundle: BundleReader,
  writer: TreeWriter,
  as: Buffer,
  { amount, check }: BundleCopySettings,
): Promise<void> {
  /** The directories that were entered and not left, the innermost last. */
  const levels: { readonly name: Buffer; readonly mode: number; last: string }[] = []
  await bundle.readStart()
  for (let count = 1; ; count++) {
    if (count % ENTRIES_PER_TURN === 0) await nextTurn()
    check()
    const head = await bundle.readHead()
    const level = levels.at(-1)
    if (head.kind === 'end') {
      if (level === undefined) throw malformed('an end without a directory')
      levels.pop()
      writer.leave(level.name, level.mode)
    } else {
      checkName(head.name, level?.last)
      const name = level === undefined ? as : Buffer.from(head.name, NAME_ENCODING)
      if (level !== undefined) level.last = head.name
      if (head.kind === 'directory') {
        if (levels.length > MAX_LEVELS) throw new CopyFault(`is more than ${MAX_LEVELS} directories deep`)
        amount.addDirectory()
        writer.enter(name)
        levels.push({ name, mode: head.mode, last: '' })
      } else {
        amount.addFile(head.size)
        await writer.file(name, head.mode, (to) =>
          bundle.copyContent(head.size, to, (bytes) => {
            amount.addBytes(bytes)
            check()
          }),
        )
      }
    }
    if (levels.length === 0) return
  }
}

/** `last` is the name before it in its directory; undefined for the outermost entry, which has no name. */
function checkName(name: string, last: string | undefined): void {
  if (last === undefined) {
    if (name !== '') throw malformed('the outermost entry has a name')
    return
  }
  if (name === '' || name === '.' || name === '..' || name.includes('/')) throw malformed('a name that is none')
  if (name.length > MAX_NAME_BYTES) throw malformed('a name that is too long')
  if (name <= last) throw malformed('names that are not in order')
}

/** NAME_MAX of Linux. */
const MAX_NAME_BYTES = 255

/** A character stands for a byte. */
const NAME_ENCODING = 'latin1'

type Head =
  | { readonly kind: 'file'; readonly mode: number; readonly size: number; readonly name: string }
  | { readonly kind: 'directory'; readonly mode: number; readonly name: string }
  | { readonly kind: 'end' }

const FILE = /^file (0|[1-7][0-7]{0,2}) (0|[1-9][0-9]{0,15}) (.*)$/s
const DIRECTORY = /^directory (0|[1-7][0-7]{0,2}) (.*)$/s

function parsedHead(text: string): Head {
  const file = FILE.exec(text)
  if (file !== null) return { kind: 'file', mode: Number.parseInt(file[1]!, 8), size: Number(file[2]), name: file[3]! }
  const directory = DIRECTORY.exec(text)
  if (directory !== null) return { kind: 'directory', mode: Number.parseInt(directory[1]!, 8), name: directory[2]! }
  if (text === 'end') return { kind: 'end' }
  throw malformed('an entry that is neither a file nor a directory')
}

const malformed = (what: string) => new CopyFault(`is no valid bundle: it has ${what}`)

const readAt = promisify(read)

/** Reads a bundle from its first byte to its last one. */
class BundleReader {
  readonly #fd: number
  readonly #size: number
  readonly #hash = new Bun.CryptoHasher('sha256')
  #position = 0
  /** The bytes from `#position` on, as far as they were read. */
  #window = Buffer.alloc(0)

  constructor(fd: number) {
    this.#fd = fd
    this.#size = fstatSync(fd).size
  }

  async readStart(): Promise<void> {
    await this.#fill(BUNDLE_START.length)
    if (!this.#window.subarray(0, BUNDLE_START.length).equals(BUNDLE_START)) throw malformed('another beginning')
    this.#take(BUNDLE_START.length)
  }

  async readHead(): Promise<Head> {
    await this.#fill(MAX_ENTRY_BYTES)
    const end = this.#window.subarray(0, MAX_ENTRY_BYTES).indexOf(0)
    if (end < 0) throw malformed('an entry without an end')
    const text = this.#window.toString(NAME_ENCODING, 0, end)
    this.#take(end + 1)
    return parsedHead(text)
  }

  /** Copies the content of a file to a new one. */
  copyContent(bytes: number, to: Buffer, onBytes: (bytes: number) => void) {
    const start = this.#position
    const end = start + bytes
    if (end > this.#size) throw malformed('a file that is not complete')
    this.#window = Buffer.alloc(0)
    this.#position = end
    const onContent = (content: Buffer) => {
      this.#hash.update(content)
      onBytes(content.length)
    }
    return copyRange({ from: this.#fd, start, end, to, onContent })
  }

  /** Throws `CopyFault` unless all was read. */
  checkEnd(): void {
    if (this.#position !== this.#size) throw malformed('more than one outermost entry')
  }

  /** The hash of what was read. */
  get sha256(): string {
    return this.#hash.digest('hex')
  }

  #take(bytes: number): void {
    this.#hash.update(this.#window.subarray(0, bytes))
    this.#window = this.#window.subarray(bytes)
    this.#position += bytes
  }

  /** Reads on until the window has `bytes`, or the bundle has no more. */
  async #fill(bytes: number): Promise<void> {
    if (this.#window.length >= bytes) return
    const window = Buffer.alloc(WINDOW_BYTES)
    let used = this.#window.copy(window)
    while (used < bytes) {
      const { bytesRead } = await readAt(this.#fd, window, used, window.length - used, this.#position + used)
      if (bytesRead === 0) break
      used += bytesRead
    }
    this.#window = window.subarray(0, used)
  }
}

/** Many heads of empty or small files are in one. */
const WINDOW_BYTES = 4 * 1024
