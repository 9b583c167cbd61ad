/**
 * Reads a chunked body and tells where it ends. Pure. Source: RFC 9112, 7.1.
 *
 * The proxy sends each piece as a chunk of its own, without extensions and trailers. So no server can find another end.
 */
import { Malformed } from './malformed.ts'

/** Maximum bytes of the line with the size of a chunk, and of all trailers together. */
export const MAX_CHUNK_LINE_BYTES = 1_024
export const MAX_TRAILER_BYTES = 8 * 1024

/** Maximum pieces that are read at once. A body of chunks of one byte has many, and each costs a few µs. */
export const MAX_PIECES = 256

/** The end of a body. */
export const LAST_CHUNK = '0\r\n\r\n'

const CR = 0x0d
const LF = 0x0a

type State = 'size' | 'data' | 'data-end' | 'trailers' | 'done'

export class ChunkedBody {
  #state: State = 'size'
  /** Bytes of the chunk that are still to come. */
  #left = 0
  #line = ''
  #trailerBytes = 0
  #taken = 0

  get isDone(): boolean {
    return this.#state === 'done'
  }

  /** How many bytes the last `read` has looked at. */
  get taken(): number {
    return this.#taken
  }

  /** The data in the next bytes of the body, up to its end or to `MAX_PIECES`. Throws `Malformed`. */
  read(bytes: Uint8Array): Uint8Array[] {
    const found: Uint8Array[] = []
    let at = 0
    while (at < bytes.length && found.length < MAX_PIECES && this.#state !== 'done') {
      if (this.#state === 'data') {
        const data = bytes.subarray(at, at + this.#left)
        found.push(data)
        at += data.length
        this.#left -= data.length
        if (this.#left === 0) this.#state = 'data-end'
      } else at = this.#readLine(bytes, at)
    }
    this.#taken = at
    return found
  }

  /** Reads up to the end of a line. Returns where to go on. */
  #readLine(bytes: Uint8Array, at: number): number {
    const end = bytes.indexOf(LF, at)
    const upTo = end < 0 ? bytes.length : end
    this.#line += Buffer.from(bytes.buffer, bytes.byteOffset + at, upTo - at).toString('latin1')
    if (this.#line.length > this.#mostOfLine()) throw new Malformed('a line of a chunked body that is too long')
    if (end < 0) return bytes.length
    if (this.#line.charCodeAt(this.#line.length - 1) !== CR) throw new Malformed('a line of a chunked body without CR')
    const line = this.#line.slice(0, -1)
    this.#line = ''
    this.#lineRead(line)
    return end + 1
  }

  #mostOfLine(): number {
    if (this.#state === 'data-end') return 1
    return this.#state === 'size' ? MAX_CHUNK_LINE_BYTES : MAX_TRAILER_BYTES - this.#trailerBytes
  }

  #lineRead(line: string): void {
    if (line.includes('\r')) throw new Malformed('a line of a chunked body with CR in it')
    if (this.#state === 'size') {
      const [, size] = /^([0-9A-Fa-f]{1,12})[\t ]*(?:;.*)?$/.exec(line) ?? []
      if (size === undefined) throw new Malformed('a chunk without its size')
      this.#left = Number.parseInt(size, 16)
      this.#state = this.#left === 0 ? 'trailers' : 'data'
    } else if (this.#state === 'data-end') this.#state = 'size'
    else if (line === '') this.#state = 'done'
    else this.#trailerBytes += line.length
  }
}

/** The bytes before and after the data of a chunk. */
export const chunkStart = (length: number): string => `${length.toString(16)}\r\n`
export const CHUNK_END = '\r\n'
