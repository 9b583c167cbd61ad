/**
 * The bytes of a journal segment. Pure.
 *
 * A segment is a sequence of frames: `<crc32, 8 hex digits> <length, 10 digits> <synced, 10 digits> <kind>\n`, then
 * `length` bytes of payload, then `\n`. The checksum covers the payload. The kinds are:
 *
 * - `g`: a submitted graph
 * - `t`: states of tasks, numbered changes, and notes
 * - `r`: revokes a graph that was refused after it had been written
 * - `d`: deletes a graph with all its tasks
 * - `m`: what a caller changed of a live graph
 * - `x`: the list for which a task with `for_each` has children
 * - `h`: past events, in the files of the history (`event-history.ts`)
 *
 * Packs (`packs.ts`) consist of frames, too:
 *
 * - `p`: the beginning of a pack
 * - `c`: a graph, or a part of a large one
 * - `o`: numbers of graphs that older packs have and that are gone
 * - `n`: notes (`notes.ts`)
 * - `e`: the end of a pack
 *
 * `synced` is the number of bytes of the segment known to be on disk when the frame was written. An invalid frame
 * behind the highest mark is a torn tail: the process or the machine stopped during the write, and nobody got an
 * answer. An invalid frame before the mark is damage. Zeros behind the last frame are preallocated
 * (`preallocation.ts`).
 */

export type FrameKind = 'g' | 't' | 'r' | 'd' | 'h' | 'm' | 'x' | 'p' | 'c' | 'o' | 'n' | 'e'

export interface Frame {
  readonly kind: FrameKind
  readonly payload: Uint8Array
  /** Offset behind the frame. */
  readonly end: number
}

export const LINE_END = 0x0a

/** Checksum, length, synced, kind, and the four bytes between and after them. */
const HEADER_BYTES = 8 + 1 + 10 + 1 + 10 + 1 + 1 + 1

const HEADER = /^([0-9a-f]{8}) (\d{10}) (\d{10}) ([gtrdhmxpcone])$/

/** Bytes of a `FrameBuffer`: at first, and at most while it is empty. */
const FIRST_BUFFER_BYTES = 64 * 1024
const MAX_IDLE_BYTES = 4 * 1024 * 1024

/** Frames as they are on disk, in one buffer that is reused. */
export class FrameBuffer {
  #buffer = Buffer.from(new ArrayBuffer(FIRST_BUFFER_BYTES))
  #length = 0

  /** Bytes of the frames. */
  get length(): number {
    return this.#length
  }

  /** The frames. Valid until the next `add` or `clear`. */
  get bytes(): Uint8Array {
    return this.#view(0, this.#length)
  }

  clear(): void {
    this.#length = 0
    if (this.#buffer.length > MAX_IDLE_BYTES) this.#buffer = Buffer.from(new ArrayBuffer(FIRST_BUFFER_BYTES))
  }

  /** Adds a frame whose payload is the concatenation of `parts`. `synced` bytes of its segment are on disk. */
  add(kind: FrameKind, parts: readonly (string | Uint8Array)[], synced: number): void {
    this.#reserve(parts)
    const start = this.#length + HEADER_BYTES
    let end = start
    for (const part of parts) {
      if (typeof part === 'string') end += this.#buffer.write(part, end)
      else {
        this.#buffer.set(part, end)
        end += part.length
      }
    }
    const checksum = Bun.hash.crc32(this.#view(start, end - start))
    writeHeader(this.#buffer, this.#length, { checksum, length: end - start, synced, kind })
    this.#buffer[end] = LINE_END
    this.#length = end + 1
  }

  #reserve(parts: readonly (string | Uint8Array)[]): void {
    let needed = this.#length + HEADER_BYTES + 1
    // A UTF-16 code unit takes at most three bytes of UTF-8.
    for (const part of parts) needed += part.length * (typeof part === 'string' ? 3 : 1)
    if (needed <= this.#buffer.length) return
    const larger = Buffer.from(new ArrayBuffer(Math.max(needed, 2 * this.#buffer.length)))
    larger.set(this.bytes)
    this.#buffer = larger
  }

  #view(start: number, length: number): Uint8Array {
    return new Uint8Array(this.#buffer.buffer, start, length)
  }
}

interface FrameHeader {
  readonly checksum: number
  /** Bytes of the payload. */
  readonly length: number
  readonly synced: number
  readonly kind: FrameKind
}

/** The header of a frame: the bytes before its payload. */
export function frameHeader(header: FrameHeader): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES)
  writeHeader(bytes, 0, header)
  return bytes
}

/** Writes byte by byte. A string would double the cost of a small frame. */
function writeHeader(buffer: Uint8Array, at: number, { checksum, length, synced, kind }: FrameHeader): void {
  for (let i = 0; i < 8; i++) buffer[at + i] = HEX_DIGITS.charCodeAt((checksum >>> (28 - 4 * i)) & 15)
  buffer[at + 8] = SPACE
  writeDigits(buffer, at + 9, length)
  buffer[at + 19] = SPACE
  writeDigits(buffer, at + 20, synced)
  buffer[at + 30] = SPACE
  buffer[at + 31] = kind.charCodeAt(0)
  buffer[at + 32] = LINE_END
}

const HEX_DIGITS = '0123456789abcdef'
const SPACE = 0x20
const ZERO = 0x30

/** Writes `number` as ten decimal digits. */
function writeDigits(buffer: Uint8Array, at: number, number: number): void {
  let rest = number
  for (let i = at + 9; i >= at; i--) {
    const tens = Math.floor(rest / 10)
    buffer[i] = ZERO + rest - tens * 10
    rest = tens
  }
}

const checksumOf = (payload: Uint8Array): string => Bun.hash.crc32(payload).toString(16).padStart(8, '0')

export type Segment =
  | { readonly frames: readonly Frame[]; readonly wholeBytes: number; readonly end: 'whole' | 'torn' }
  | { readonly damagedAt: number }

/** Decodes a segment. `wholeBytes` is the offset of the torn tail, `damagedAt` the offset of the damaged frame. */
export function decodeSegment(bytes: Uint8Array): Segment {
  const frames: Frame[] = []
  let at = 0
  let synced = 0
  while (at < bytes.length) {
    const frame = frameAt(bytes, at)
    if (frame === undefined) {
      if (isPreallocated(bytes, at)) break
      return syncedBehind(bytes, at, synced) > at ? { damagedAt: at } : { frames, wholeBytes: at, end: 'torn' }
    }
    frames.push(frame)
    synced = Math.max(synced, frame.synced)
    at = frame.end
  }
  return { frames, wholeBytes: at, end: 'whole' }
}

const isPreallocated = (bytes: Uint8Array, at: number): boolean =>
  bytes[at] === 0 && bytes.subarray(at).every((byte) => byte === 0)

/** The whole frame at `at`. Undefined if there is none. */
export function frameAt(bytes: Uint8Array, at: number): (Frame & { readonly synced: number }) | undefined {
  const start = at + HEADER_BYTES
  if (start >= bytes.length || bytes[start - 1] !== LINE_END) return undefined
  const header = HEADER.exec(String.fromCharCode(...bytes.subarray(at, start - 1)))
  if (header === null) return undefined
  const end = start + Number(header[2])
  if (end >= bytes.length || bytes[end] !== LINE_END) return undefined
  const payload = bytes.subarray(start, end)
  if (checksumOf(payload) !== header[1]) return undefined
  return { kind: header[4] as FrameKind, payload, synced: Number(header[3]), end: end + 1 }
}

/**
 * The highest `synced` mark of valid frames behind `at`, at least `synced`. Tries every line end as the start of a
 * frame.
 */
function syncedBehind(bytes: Uint8Array, at: number, synced: number): number {
  for (let i = bytes.indexOf(LINE_END, at); i >= 0; i = bytes.indexOf(LINE_END, i + 1)) {
    synced = Math.max(synced, frameAt(bytes, i + 1)?.synced ?? 0)
  }
  return synced
}
