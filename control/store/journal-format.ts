/**
 * The bytes of a journal segment. Pure.
 *
 * A segment is a row of frames: `<crc32, 8 hex digits> <length, 10 digits> <synced, 10 digits> <kind>\n`, then `length`
 * bytes, then `\n`. The checksum is of these bytes. A frame of kind `g` is one submitted graph; one of kind `t` holds
 * lines, each the state of a task; one of kind `r` takes back a graph that was refused after it had been written.
 *
 * `synced` is how much of the segment was known to be on disk when the frame was written. What is wrong behind the highest
 * such mark was never acknowledged: whoever wrote it died, or the machine lost power, and that tail is torn. What is
 * wrong before it is damage.
 */

export type FrameKind = 'g' | 't' | 'r'

export interface Frame {
  readonly kind: FrameKind
  readonly payload: Uint8Array
}

const LINE_END = 0x0a

/** Checksum, length, synced, kind, and the four bytes between and after them. */
const HEADER_BYTES = 8 + 1 + 10 + 1 + 10 + 1 + 1 + 1

const HEADER = /^([0-9a-f]{8}) (\d{10}) (\d{10}) ([gtr])$/

const digits = (number: number): string => String(number).padStart(10, '0')

/** Puts frames together in one buffer that is used again and again: what it returns is good until the next call. */
export class FrameEncoder {
  #buffer = Buffer.allocUnsafe(64 * 1024)

  /** The bytes of a frame whose payload is `parts`, one after the other. `synced` bytes of its segment are on disk. */
  encode(kind: FrameKind, parts: readonly (string | Uint8Array)[], synced: number): Uint8Array {
    this.#makeRoom(parts)
    let end = HEADER_BYTES
    for (const part of parts) {
      if (typeof part === 'string') end += this.#buffer.write(part, end)
      else {
        this.#buffer.set(part, end)
        end += part.length
      }
    }
    const payload = this.#buffer.subarray(HEADER_BYTES, end)
    this.#buffer.write(`${checksum(payload)} ${digits(payload.length)} ${digits(synced)} ${kind}\n`, 'latin1')
    this.#buffer[end] = LINE_END
    return this.#buffer.subarray(0, end + 1)
  }

  #makeRoom(parts: readonly (string | Uint8Array)[]): void {
    // A character of a string takes at most three bytes.
    const needed = parts.reduce((sum, part) => sum + part.length * (typeof part === 'string' ? 3 : 1), HEADER_BYTES + 1)
    if (needed > this.#buffer.length || (this.#buffer.length > MAX_IDLE_BYTES && needed <= MAX_IDLE_BYTES)) {
      this.#buffer = Buffer.allocUnsafe(Math.max(needed, 64 * 1024))
    }
  }
}

/** Bytes of the buffer that are kept when a large frame has been written. */
const MAX_IDLE_BYTES = 4 * 1024 * 1024

const checksum = (payload: Uint8Array): string => Bun.hash.crc32(payload).toString(16).padStart(8, '0')

export type Segment =
  | { readonly frames: readonly Frame[]; readonly wholeBytes: number; readonly end: 'whole' | 'torn' }
  | { readonly damagedAt: number }

/** The frames of a segment; `wholeBytes` is where a torn tail begins. `damagedAt` is the offset of a damaged frame. */
export function decodeSegment(bytes: Uint8Array): Segment {
  const frames: Frame[] = []
  let at = 0
  let synced = 0
  while (at < bytes.length) {
    const frame = frameAt(bytes, at)
    if (frame === undefined) {
      return syncedBehind(bytes, at, synced) > at ? { damagedAt: at } : { frames, wholeBytes: at, end: 'torn' }
    }
    frames.push(frame)
    synced = Math.max(synced, frame.synced)
    at = frame.end
  }
  return { frames, wholeBytes: at, end: 'whole' }
}

function frameAt(
  bytes: Uint8Array,
  at: number,
): (Frame & { readonly synced: number; readonly end: number }) | undefined {
  const start = at + HEADER_BYTES
  if (start >= bytes.length || bytes[start - 1] !== LINE_END) return undefined
  const header = HEADER.exec(String.fromCharCode(...bytes.subarray(at, start - 1)))
  if (header === null) return undefined
  const end = start + Number(header[2])
  if (end >= bytes.length || bytes[end] !== LINE_END) return undefined
  const payload = bytes.subarray(start, end)
  if (checksum(payload) !== header[1]) return undefined
  return { kind: header[4] as FrameKind, payload, synced: Number(header[3]), end: end + 1 }
}

/** The highest mark of the whole frames behind `at`, at least `synced`. Headers begin behind a line end. */
function syncedBehind(bytes: Uint8Array, at: number, synced: number): number {
  for (let i = bytes.indexOf(LINE_END, at); i >= 0; i = bytes.indexOf(LINE_END, i + 1)) {
    synced = Math.max(synced, frameAt(bytes, i + 1)?.synced ?? 0)
  }
  return synced
}
