/**
 * Saves a file or a directory of a task to the disk.
 *
 * A file is written beside its place under a name with its etag, and gets its own name when it is complete. So the next call
 * goes on with what an earlier one has left. The tar of a directory is kept the same way. It is then unpacked beside the place
 * into a new directory, in which nothing leads elsewhere. The tar of an earlier version of the service has no etag: it is
 * unpacked as it comes, and begins anew after a lost connection. This is for Bun and Node; browsers only load the module.
 */
import type { Patience } from './followed-log.ts'
import { type FileFacts, type FilePiece, type FileStart, type ResumedFileRequest, resumedFile } from './resumed-file.ts'
import type { StreamSource } from './source.ts'
import { type TarEntry, tarEntries } from './tar-entries.ts'

export interface SavedFile {
  /** Where it is now. */
  readonly path: string
  readonly type: 'file' | 'directory'
  /** Size of the file, or of all files. */
  readonly bytes: number
  /** Number of files. */
  readonly files: number
  /** Bytes that an earlier call had left: of the file, or of the tar of the directory. */
  readonly resumed_at: number
}

export interface SaveRequest extends Pick<ResumedFileRequest, 'path' | 'patience' | 'statusOf' | 'signal'> {
  /** The last name of its path, which it gets in a directory. */
  readonly name: string
  /** Where it goes to; or an existing directory, into which it goes. */
  readonly to: string
  /** Called for each piece. `total` is undefined if the service does not tell it. */
  readonly onProgress: (bytes: number, total: number | undefined) => void
}

/** In variables, so that bundlers for browsers do not look for them. */
const FS: string = 'node:fs/promises'
const PATHS: string = 'node:path'

type Files = typeof import('node:fs/promises')

type OpenFile = Awaited<ReturnType<Files['open']>>

interface Place {
  readonly files: Files
  /** Where it goes to. */
  readonly target: string
}

/** What a tar without an etag broke off with. */
class Broken extends Error {
  constructor(override readonly cause: unknown) {
    super()
  }
}

/** Throws what `lost` of the patience throws, or the error of the disk. */
export async function saveFile(source: StreamSource, request: SaveRequest): Promise<SavedFile> {
  const files = (await import(FS)) as Files
  const { join } = (await import(PATHS)) as typeof import('node:path')
  const isInDirectory = (await files.stat(request.to).catch(() => undefined))?.isDirectory() === true
  const target = isInDirectory ? join(request.to, request.name) : request.to.replace(/(?<=.)\/+$/, '')
  for (;;) {
    try {
      return await savedOnce(source, request, { files, target })
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      await request.patience.lost(error.cause)
    }
  }
}

async function savedOnce(source: StreamSource, request: SaveRequest, place: Place): Promise<SavedFile> {
  const partial = await PartialFile.find(place)
  let facts: FileFacts | undefined
  const isWithoutEtag = () => facts?.isTar === true && facts.etag === undefined
  /** Such a tar begins anew as a whole, so its pieces have no second beginning. */
  const patience: Patience = {
    over: () => request.patience.over(),
    lost: async (error) => {
      if (isWithoutEtag()) throw new Broken(error)
      await request.patience.lost(error)
    },
  }
  const pieces = resumedFile(source, {
    ...request,
    ...{ patience, from: partial.left },
    onBegin: async (begun) => {
      facts = begun
      if (begun.isTar) await ensureNothingAt(place)
      if (!isWithoutEtag()) await partial.begin(begun)
    },
  })
  try {
    const first = await pieces.next()
    if (isWithoutEtag()) return { ...(await unpacked(arriving(after(first, pieces), request), place)), resumed_at: 0 }
    for await (const piece of after(first, pieces)) {
      await partial.write(piece)
      request.onProgress(piece.offset + piece.bytes.length, facts!.bytes)
    }
    if (facts!.isTar) return { ...(await partial.unpacked(request.signal)), resumed_at: partial.resumedAt }
    const bytes = await partial.complete()
    return { path: place.target, type: 'file', bytes, files: 1, resumed_at: partial.resumedAt }
  } finally {
    await pieces.return(undefined)
    await partial.close()
  }
}

async function* after(first: IteratorResult<FilePiece, void>, rest: AsyncGenerator<FilePiece>) {
  if (first.done === true) return
  yield first.value
  yield* rest
}

/** A file that is not complete: `.NAME.ETAG.part`, beside the place of the file. That of a tar ends with `.tar.part`. */
class PartialFile {
  readonly #place: Place
  readonly #start: string
  readonly #directory: string
  #path: string | undefined
  #file: OpenFile | undefined
  #bytes = 0
  /** What an earlier call has left. */
  readonly left: FileStart | undefined
  resumedAt = 0

  private constructor(place: Place, directory: string, start: string, left: PartialFile['left']) {
    this.#place = place
    this.#directory = directory
    this.#start = start
    this.left = left
    if (left !== undefined) this.#path = this.#pathOf(left)
  }

  static async find(place: Place): Promise<PartialFile> {
    const { basename, dirname, join } = (await import(PATHS)) as typeof import('node:path')
    const { files, target } = place
    const directory = dirname(target)
    const start = `.${basename(target).slice(0, MAX_NAME_PART)}.`
    const names = await files.readdir(directory)
    for (const name of names) {
      const [, etag, tar] = (name.startsWith(start) && PART_ENDING.exec(name.slice(start.length))) || []
      if (etag === undefined) continue
      const { size } = await files.stat(join(directory, name))
      return new PartialFile(place, directory, start, { offset: size, etag: `"${etag}"`, isTar: tar !== undefined })
    }
    return new PartialFile(place, directory, start, undefined)
  }

  #pathOf({ etag, isTar }: Pick<FileFacts, 'etag' | 'isTar'>): string {
    const word = /^"([0-9a-z-]+)"$/.exec(etag ?? '')?.[1] ?? 'UNKNOWN' // which is never resumed
    return `${this.#directory}/${this.#start}${word}${isTar ? '.tar' : ''}.part`
  }

  /** The file begins, at the offset of its next piece. */
  async begin(facts: FileFacts): Promise<void> {
    const { files } = this.#place
    const { offset } = facts
    const path = this.#pathOf(facts)
    if (path !== this.#path) {
      await this.close()
      if (this.#path !== undefined) await this.#remove()
    }
    this.#path = path
    const { O_CREAT, O_NOFOLLOW, O_RDWR } = files.constants
    this.#file ??= await files.open(path, O_CREAT | O_NOFOLLOW | O_RDWR, 0o666)
    this.#bytes = offset
    this.resumedAt = offset
    await this.#file.truncate(offset)
  }

  async write({ offset, bytes }: FilePiece): Promise<void> {
    await writeAll(this.#file!, bytes, offset)
    this.#bytes = offset + bytes.length
  }

  /** Gives the file its name. Returns its size. */
  async complete(): Promise<number> {
    await this.#file!.sync()
    await this.#place.files.rename(this.#path!, this.#place.target)
    return this.#bytes
  }

  /**
   * Unpacks the tar at its place, and removes it. It stays for the next call only if the disk is full or `signal` fires: a tar
   * with a fault would have it again.
   */
  async unpacked(signal: AbortSignal): Promise<Unpacked> {
    try {
      const directory = await unpacked(this.#content(signal), this.#place)
      await this.#remove()
      return directory
    } catch (error) {
      if (!signal.aborted && !FULL.has((error as NodeJS.ErrnoException).code ?? '')) await this.#remove()
      throw error
    }
  }

  async *#content(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (let position = 0; position < this.#bytes; ) {
      signal.throwIfAborted()
      const { buffer, bytesRead } = await this.#file!.read(new Uint8Array(READ_BYTES), 0, READ_BYTES, position)
      if (bytesRead === 0) return
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }

  #remove(): Promise<void> {
    return this.#place.files.rm(this.#path!, { force: true })
  }

  async close(): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
  }
}

/** The etag of a partial file, and whether it is a tar. */
const PART_ENDING = /^([0-9a-z-]+)(\.tar)?\.part$/

const READ_BYTES = 256 * 1024

/** Errors of a disk that has no room. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

/** Characters of the name in the name of the partial file, which may have 255 bytes. */
const MAX_NAME_PART = 50

/** The bytes of a tar that is not kept. */
async function* arriving(pieces: AsyncIterable<FilePiece>, { onProgress }: SaveRequest): AsyncGenerator<Uint8Array> {
  for await (const { offset, bytes } of pieces) {
    onProgress(offset + bytes.length, undefined)
    yield bytes
  }
}

type Unpacked = Omit<SavedFile, 'resumed_at'>

async function unpacked(chunks: AsyncIterable<Uint8Array>, { files, target }: Place): Promise<Unpacked> {
  const beside = await files.mkdtemp(`${target}.part-`)
  try {
    let [bytes, count] = [0, 0]
    for await (const entry of tarEntries(chunks)) {
      const path = pathOf(beside, entry.names)
      // The owner has to write into it now, and to remove it one day.
      if (entry.type === 'directory') await files.mkdir(path, { mode: entry.mode | 0o700 })
      else {
        await writeNew(files, path, entry)
        bytes += entry.bytes
        count++
      }
    }
    const [only, ...others] = await files.readdir(beside, { encoding: 'buffer' })
    if (only === undefined || others.length > 0) throw new Error('the answer is no tar of one directory')
    await files.rename(pathOf(beside, [only]), target)
    return { path: target, type: 'directory', bytes, files: count }
  } finally {
    await files.rm(beside, { recursive: true, force: true })
  }
}

async function ensureNothingAt({ files, target }: Place): Promise<void> {
  const isThere = await files.lstat(target).then(
    () => true,
    () => false,
  )
  if (isThere) throw new Error(`there is something at ${target}: remove it, or name another path`)
}

/** Names are bytes, which need not be text. */
function pathOf(directory: string, names: readonly Uint8Array[]): Buffer {
  const encoder = new TextEncoder()
  const parts = [encoder.encode(directory), ...names.flatMap((name) => [encoder.encode('/'), name])]
  const path = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    path.set(part, at)
    at += part.length
  }
  return path as Buffer
}

async function writeNew(files: Files, path: Buffer, { mode, content }: TarEntry): Promise<void> {
  const file = await files.open(path, 'wx', mode)
  try {
    let position = 0
    for await (const part of content) {
      await writeAll(file, part, position)
      position += part.length
    }
  } finally {
    await file.close()
  }
}

async function writeAll(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten
  }
}
