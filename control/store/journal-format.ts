/**
 * The bytes of a journal segment. Pure.
 *
 * A segment is a row of frames: `<crc32, 8 hex digits> <length, 10 digits> <kind>\n`, then `length` bytes, then `\n`. The checksum is
 * of these bytes. A frame of kind `g` is one accepted graph; one of kind `t` holds lines, each the state of a task.
 *
 * Whoever dies while writing leaves a frame that is not whole at the end of the segment: its tail is torn, and nothing in
 * it was acknowledged. A frame that is wrong while whole ones follow is damage.
 */

export type FrameKind = 'g' | 't'

export interface Frame {
  readonly kind: FrameKind
  readonly payload: Uint8Array
}

const LINE_END = 0x0a

/** Checksum, length, kind, and the three bytes between and after them. */
const HEADER_BYTES = 8 + 1 + 10 + 1 + 1 + 1

const HEADER = /^([0-9a-f]{8}) (\d{10}) ([gt])$/

/** Puts frames together in one buffer that is used again and again: what it returns is good until the next call. */
export class FrameEncoder {
  #buffer = Buffer.allocUnsafe(64 * 1024)

  /** The bytes of a frame whose payload is `parts`, one after the other. */
  encode(kind: FrameKind, parts: readonly (string | Uint8Array)[]): Uint8Array {
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
    this.#buffer.write(`${checksum(payload)} ${String(payload.length).padStart(10, '0')} ${kind}\n`, 'latin1')
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
  while (at < bytes.length) {
    const frame = frameAt(bytes, at)
    if (frame === undefined) {
      if (hasFrameAfter(bytes, at)) return { damagedAt: at }
      return { frames, wholeBytes: at, end: 'torn' }
    }
    frames.push(frame)
    at = frame.end
  }
  return { frames, wholeBytes: at, end: 'whole' }
}

function frameAt(bytes: Uint8Array, at: number): (Frame & { readonly end: number }) | undefined {
  const start = at + HEADER_BYTES
  if (start >= bytes.length || bytes[start - 1] !== LINE_END) return undefined
  const header = HEADER.exec(String.fromCharCode(...bytes.subarray(at, start - 1)))
  if (header === null) return undefined
  const end = start + Number(header[2])
  if (end >= bytes.length || bytes[end] !== LINE_END) return undefined
  const payload = bytes.subarray(start, end)
  if (checksum(payload) !== header[1]) return undefined
  return { kind: header[3] as FrameKind, payload, end: end + 1 }
}

/** Whether a whole frame begins anywhere behind `at`. Headers begin behind a line end. */
function hasFrameAfter(bytes: Uint8Array, at: number): boolean {
  for (let i = bytes.indexOf(LINE_END, at); i >= 0; i = bytes.indexOf(LINE_END, i + 1)) {
    if (frameAt(bytes, i + 1) !== undefined) return true
  }
  return false
}
