/**
 * A position in the bytes of a JSON text that moves over the structure around values, not into them. Pure.
 *
 * The scan looks at quotes, escapes, brackets and separators only. `JSON.parse` decides later whether a value is valid,
 * so the borders that the scan reports are right for a valid text and harmless for any other.
 */
import { byteOrderMarkLength, decodeUtf8, JsonSyntaxError, parseText } from '../../shared/text/json-bytes.ts'

/** Bytes scanned between two yields: about a quarter of a millisecond. */
const BYTES_PER_YIELD = 128 * 1024

/** Bytes searched for a guessed border. Larger objects are scanned. */
const BYTES_PER_GUESS = 4 * 1024

// Typed as numbers, not as literals: TypeScript would narrow `scan.byte` and not notice that a step changes it.
const QUOTE: number = 0x22
const BACKSLASH: number = 0x5c
const COMMA: number = 0x2c
const COLON: number = 0x3a
export const OPEN_OBJECT: number = 0x7b
const CLOSE_OBJECT: number = 0x7d
export const OPEN_ARRAY: number = 0x5b
const CLOSE_ARRAY: number = 0x5d

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Return value of `skipValue` when a yield is due. */
export const UNFINISHED = -1

/** A position in the bytes that moves over the structure around the members of a container. */
export class Scan {
  at: number
  /** Number of fields of the object that `skipValue` has passed or is inside of. */
  fields = 0
  /** The position at which `skipValue` stopped for a yield, and the depth there. */
  #unfinishedAt: number | undefined
  #depth = 0

  constructor(readonly bytes: Uint8Array) {
    this.at = byteOrderMarkLength(bytes)
    this.#skipSpace()
  }

  /** The byte at the position; undefined at the end. */
  get byte(): number | undefined {
    return this.bytes[this.at]
  }

  /** Enters the object at the position. Returns the name of its first member, or undefined for an empty object. */
  enterObject(): string | undefined {
    this.#step()
    if (this.byte !== CLOSE_OBJECT) return this.#key()
    this.#step()
    return undefined
  }

  /** Moves from a member's value to the next member. Returns its name, or undefined at the end of the object. */
  nextKey(): string | undefined {
    const byte = this.byte
    if (byte !== COMMA && byte !== CLOSE_OBJECT) throw new JsonSyntaxError("Expected '}'")
    this.#step()
    return byte === COMMA ? this.#key() : undefined
  }

  /** Enters the array at the position. Returns false for an empty array. */
  enterArray(): boolean {
    this.#step()
    if (this.byte !== CLOSE_ARRAY) return true
    this.#step()
    return false
  }

  /** Moves from an element to the next. Returns false at the end of the array. */
  nextElement(): boolean {
    const byte = this.byte
    if (byte !== COMMA && byte !== CLOSE_ARRAY) throw new JsonSyntaxError("Expected ']'")
    this.#step()
    return byte === COMMA
  }

  expectEnd(): void {
    if (this.at !== this.bytes.length) throw new JsonSyntaxError('Unexpected text after the end')
  }

  /**
   * Moves behind a value and the space after it. Returns the end of the value, or `UNFINISHED` when a yield is due:
   * then call again. Checks borders only, not the text between them.
   */
  skipValue(): number {
    const { bytes } = this
    let at = this.#unfinishedAt ?? this.at
    const pauseAt = at + BYTES_PER_YIELD
    let depth = this.#depth
    let fields = this.#unfinishedAt === undefined ? 0 : this.fields
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (byte === QUOTE) {
        at = stringEnd(bytes, at) - 1
        if (depth === 0) {
          at++
          break
        }
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (depth === 0) break
        depth--
        if (depth === 0) {
          at++
          break
        }
      } else if (byte === COLON && depth === 1) fields++
      else if (depth === 0 && (byte === COMMA || isSpace(byte))) break
      if (at >= pauseAt) {
        this.#depth = depth
        this.fields = fields
        this.#unfinishedAt = at + 1
        return UNFINISHED
      }
    }
    if (at === this.at) throw new JsonSyntaxError('Expected a value')
    this.#depth = 0
    this.fields = fields
    this.#unfinishedAt = undefined
    this.at = at
    this.#skipSpace()
    return at
  }

  /** The last place before `before` where an object may `end` and the `next` begin; undefined if none is near. */
  guessBorder(before: number): { readonly end: number; readonly next: number } | undefined {
    const { bytes } = this
    if (before > bytes.length) return undefined
    for (let next = before - 1; next > this.at && next >= before - BYTES_PER_GUESS; next--) {
      if (bytes[next] !== OPEN_OBJECT) continue
      const comma = this.#backOverSpace(next - 1)
      if (bytes[comma] !== COMMA) continue
      const close = this.#backOverSpace(comma - 1)
      if (bytes[close] === CLOSE_OBJECT) return { end: close + 1, next }
    }
    return undefined
  }

  #backOverSpace(at: number): number {
    let back = at
    while (isSpace(this.bytes[back])) back--
    return back
  }

  #key(): string {
    if (this.byte !== QUOTE) throw new JsonSyntaxError('Property name must be a string literal')
    const end = stringEnd(this.bytes, this.at)
    const key = parseSlice(this.bytes, this.at, end) as string
    this.at = end
    this.#skipSpace()
    if (this.byte !== COLON) throw new JsonSyntaxError("Expected ':' before value in object property definition")
    this.#step()
    return key
  }

  /** Moves over one byte and the space after it. */
  #step(): void {
    this.at++
    this.#skipSpace()
  }

  #skipSpace(): void {
    while (isSpace(this.bytes[this.at])) this.at++
  }
}

/** Bytes of a string that are compared one by one. Most strings end within; the rest of a long one is searched. */
const SHORT_STRING = 32

/** The index after the closing quote of the string that opens at `at`. */
function stringEnd(bytes: Uint8Array, at: number): number {
  const short = Math.min(at + SHORT_STRING, bytes.length)
  for (let i = at + 1; i < short; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) return i + 1
    if (byte === BACKSLASH) i++
  }
  return longStringEnd(bytes, at)
}

function longStringEnd(bytes: Uint8Array, at: number): number {
  let from = at + 1
  for (;;) {
    const quote = bytes.indexOf(QUOTE, from)
    if (quote < 0) throw new JsonSyntaxError('Unterminated string')
    let slash = quote - 1
    while (slash > at && bytes[slash] === BACKSLASH) slash--
    if ((quote - slash) % 2 === 1) return quote + 1
    from = quote + 1
  }
}

/** Parses the value from `start` to `end`. */
export const parseSlice = (bytes: Uint8Array, start: number, end: number): unknown =>
  parseText(decodeUtf8(bytes.subarray(start, end)))
