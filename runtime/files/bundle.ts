/**
 * A bundle: a file or a directory of a task as one sequence of bytes, in which it is handed to another runtime service.
 *
 * After the line `taskmill-bundle 1` come entries. A file is `file`, its permissions in octal, its size and its name, with
 * spaces between them and a NUL at the end, then its bytes. A directory is `directory`, its permissions, its name and a NUL,
 * then its entries in the order of the bytes of their names, then `end` and a NUL. The outermost entry has no name, and
 * nothing follows it. So the same tree has the same bytes everywhere.
 */
import { read } from 'node:fs'
import { promisify } from 'node:util'
import { CHUNK_BYTES } from './file-copy.ts'
import { CopyFault, type TreeStep, type TreeWalk, type WalkSettings } from './tree-walk.ts'

export const BUNDLE_START = Buffer.from('taskmill-bundle 1\n')

/** Bytes of an entry besides its content, at most: `file`, permissions, size, a name of 255 bytes, and `end`. */
export const MAX_ENTRY_BYTES = 320

/** What comes before the content of a file, and what stands for the other steps of a walk. */
function headOf(step: TreeStep): Buffer {
  if (step.kind === 'leave') return Buffer.from('end\0')
  const mode = step.mode.toString(8)
  const start = step.kind === 'file' ? `file ${mode} ${step.size} ` : `directory ${mode} `
  return Buffer.concat([Buffer.from(start), step.name, Buffer.of(0)])
}

export interface BundleSize {
  readonly bytes: number
  readonly files: number
}

/** The size of a bundle. Reads no file. */
export async function bundleSize(walk: TreeWalk): Promise<BundleSize> {
  let bytes = BUNDLE_START.length
  let files = 0
  for await (const step of walk) {
    bytes += headOf(step).length
    if (step.kind !== 'file') continue
    bytes += step.size
    files++
  }
  return { bytes, files }
}

/** The settings of the walk that reading uses, too. */
type BundleReading = Pick<WalkSettings, 'amount' | 'check'>

/** The size of a bundle and its hash. */
export async function bundleDigest(walk: TreeWalk, reading: BundleReading): Promise<BundleSize & { sha256: string }> {
  const hash = new Bun.CryptoHasher('sha256')
  let bytes = 0
  for await (const chunk of bundleChunks(walk, reading)) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { bytes, files: reading.amount.files, sha256: hash.digest('hex') }
}

const readAt = promisify(read)

type Chunk = Buffer<ArrayBuffer>
export type Chunks = AsyncGenerator<Chunk, void, void>

/** What an archive has besides the content of files. Nothing is longer than a chunk. */
export interface ArchiveForm {
  readonly start: Buffer
  /** What comes before the content of a file, and what stands for the other steps of a walk. */
  headOf(step: TreeStep): Buffer
  /** What follows the content of a file. */
  tailOf(size: number): Buffer
  readonly end: Buffer
}

const NOTHING = Buffer.of()

const BUNDLE: ArchiveForm = { start: BUNDLE_START, headOf, tailOf: () => NOTHING, end: NOTHING }

/** The bytes of a bundle. Each chunk is a buffer of its own. Throws `CopyFault`. */
export const bundleChunks = (walk: TreeWalk, reading: BundleReading): Chunks => archiveChunks(walk, reading, BUNDLE)

/** The same of an archive of this form. */
export async function* archiveChunks(walk: TreeWalk, { amount, check }: BundleReading, form: ArchiveForm): Chunks {
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  let used = form.start.copy(chunk)
  /** Adds `bytes`. Returns the chunk before if they begin a new one. */
  const add = (bytes: Buffer): Chunk | undefined => {
    const full = used + bytes.length > chunk.length ? chunk.subarray(0, used) : undefined
    if (full !== undefined) {
      chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      used = 0
    }
    used += bytes.copy(chunk, used)
    return full
  }
  for await (const step of walk) {
    const full = add(form.headOf(step))
    if (full !== undefined) yield full
    if (step.kind !== 'file') continue
    for (let position = 0; position < step.size; ) {
      if (used === chunk.length) {
        yield chunk
        chunk = Buffer.allocUnsafe(CHUNK_BYTES)
        used = 0
      }
      const room = Math.min(chunk.length - used, step.size - position)
      const { bytesRead } = await readAt(step.fd, chunk, used, room, position)
      if (bytesRead === 0) throw new CopyFault('became shorter while it was read')
      amount.addBytes(bytesRead)
      check()
      used += bytesRead
      position += bytesRead
    }
    const filled = add(form.tailOf(step.size))
    if (filled !== undefined) yield filled
  }
  const last = add(form.end)
  if (last !== undefined) yield last
  yield chunk.subarray(0, used)
}

/** `first` and then the other chunks as a stream. A slow reader costs one chunk of memory. */
export function bundleStream(first: IteratorResult<Chunk, void>, chunks: Chunks) {
  let next: IteratorResult<Chunk, void> | undefined = first
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = next ?? (await chunks.next())
        next = undefined
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
}
