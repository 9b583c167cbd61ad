/**
 * A bundle: a file or a directory of a task as one sequence of bytes, in which it is handed to another runtime service.
 *
 * After the line `taskmill-bundle 1` come entries. A file is `file`, its permissions in octal, its size and its name, with
 * spaces between them and a NUL at the end, then its bytes. A directory is `directory`, its permissions, its name and a NUL,
 * then its entries in the order of the bytes of their names, then `end` and a NUL. The outermost entry has no name, and
 * nothing follows it. So the same tree has the same bytes everywhere.
 */
import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { CHUNK_BYTES } from './file-copy.ts'
import { CopyFault, type TreeStep, type TreeWalk, versionOf, type WalkSettings } from './tree-walk.ts'

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

/** The text of a `CopyFault` for files that another try may read. */
export const CHANGED = 'changed while it was read'

const BUNDLE: ArchiveForm = { start: BUNDLE_START, headOf, tailOf: () => NOTHING, end: NOTHING }

/** The bytes of a bundle. Each chunk is a buffer of its own. Throws `CopyFault`. */
export const bundleChunks = (walk: TreeWalk, reading: BundleReading): Chunks => archiveChunks(walk, reading, BUNDLE)

/** An archive as a walk finds it, which reads no file. */
export interface ArchiveOutline {
  readonly bytes: number
  /** Of what the walk finds: files that change have another one. In hexadecimal digits. */
  readonly hash: string
  /** A number for each step of the walk, which is another one if the step has changed. */
  readonly marks: readonly number[]
}

/** Throws `CopyFault`, also if there are more bytes than may be read. */
export async function archiveOutline(
  walk: TreeWalk,
  { amount }: BundleReading,
  form: ArchiveForm,
): Promise<ArchiveOutline> {
  const hash = new Bun.CryptoHasher('sha256')
  const marks: number[] = []
  let bytes = form.start.length + form.end.length
  for await (const step of walk) {
    const head = form.headOf(step)
    hash.update(head).update(versionIn(step))
    marks.push(markOf(head, step))
    bytes += head.length
    if (step.kind !== 'file') continue
    amount.addBytes(step.size)
    bytes += step.size + form.tailOf(step.size).length
  }
  return { bytes, hash: hash.digest('hex').slice(0, HASH_DIGITS), marks }
}

/** Enough to tell the states of a directory apart, and short enough for the name of a file. */
const HASH_DIGITS = 32

const versionIn = (step: TreeStep): string => (step.kind === 'file' ? `${step.version}\n` : '')

/** 53 bits of a hash. */
const markOf = (head: Buffer, step: TreeStep): number =>
  Number(BigInt.asUintN(53, Bun.hash(versionIn(step), Bun.hash(head))))

/** The bytes of an archive from `from` to `to`. */
export interface ArchivePart {
  readonly outline: ArchiveOutline
  readonly from: number
  /** The byte behind the last one. */
  readonly to: number
}

/**
 * The same of an archive of this form, or a part of it: files that are not in the part are not read. A part that is no
 * longer as the outline says ends with a `CopyFault`.
 */
export async function* archiveChunks(
  walk: TreeWalk,
  { amount, check }: BundleReading,
  form: ArchiveForm,
  part?: ArchivePart,
): Chunks {
  const { from, to } = part ?? { from: 0, to: Number.POSITIVE_INFINITY }
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  let used = 0
  /** The place in the archive of what comes next. */
  let at = 0
  /** Passes `length` bytes of the archive. Returns which of them belong to the part. */
  const pass = (length: number) => {
    const within = (place: number) => Math.min(Math.max(place - at, 0), length)
    const bounds = [within(from), within(to)] as const
    at += length
    return bounds
  }
  /** Adds `bytes`. Returns the chunk before if they begin a new one. */
  const add = (whole: Buffer): Chunk | undefined => {
    const bytes = whole.subarray(...pass(whole.length))
    const full = used + bytes.length > chunk.length ? chunk.subarray(0, used) : undefined
    if (full !== undefined) {
      chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      used = 0
    }
    used += bytes.copy(chunk, used)
    return full
  }
  add(form.start)
  let steps = 0
  for await (const step of walk) {
    if (at >= to) break
    const head = form.headOf(step)
    if (part !== undefined && markOf(head, step) !== part.outline.marks[steps++]) throw new CopyFault(CHANGED)
    const full = add(head)
    if (full !== undefined) yield full
    if (step.kind !== 'file') continue
    const [start, end] = pass(step.size)
    for (let position = start; position < end; ) {
      if (used === chunk.length) {
        yield chunk
        chunk = Buffer.allocUnsafe(CHUNK_BYTES)
        used = 0
      }
      const room = Math.min(chunk.length - used, end - position)
      const { bytesRead } = await readAt(step.fd, chunk, used, room, position)
      if (bytesRead === 0) throw new CopyFault(part === undefined ? 'became shorter while it was read' : CHANGED)
      amount.addBytes(bytesRead)
      check()
      used += bytesRead
      position += bytesRead
    }
    if (part !== undefined && start < end && versionOf(fstatSync(step.fd)) !== step.version)
      throw new CopyFault(CHANGED)
    const filled = add(form.tailOf(step.size))
    if (filled !== undefined) yield filled
  }
  if (part !== undefined && at < to && steps < part.outline.marks.length) throw new CopyFault(CHANGED)
  const last = add(form.end)
  if (last !== undefined) yield last
  if (used > 0) yield chunk.subarray(0, used)
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
