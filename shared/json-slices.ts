/**
 * JSON that is too large to parse in one go.
 *
 * `JSON.parse` of 64 MiB holds the event loop for a quarter of a second. These readers find the borders of the members
 * of one container by looking at its bytes (quotes, escapes, depth), then hand each member to `JSON.parse`, pausing in
 * between. They accept and refuse exactly what `JSON.parse` does (a property test compares the two), except that a
 * member keeps its place: the order of an object's members is the order in the text, whatever their names.
 *
 * In an array of objects, borders are guessed: where `},{` stands, one object probably ends. If the text up to there is a
 * list of whole values, as `JSON.parse` itself says, it was one; else the array's bytes are looked at after all. That
 * reads a list of 100,000 tasks in half of the time.
 */
import { isYieldDue, type Steps } from './steps.ts'

/** The text is not JSON, or not UTF-8. */
export class JsonSyntaxError extends Error {
  override name = 'JsonSyntaxError'
}

/** Bytes scanned between two pauses: about a quarter of a millisecond. */
const BYTES_PER_YIELD = 128 * 1024

/** Members parsed by one call of `JSON.parse`: enough to make the call itself cheap. */
const BYTES_PER_PARSE = 64 * 1024

/** Bytes in which a border is guessed. Larger objects are worth a look at their bytes. */
const BYTES_PER_GUESS = 4 * 1024

// Typed as numbers, not as literals: the byte at a position changes while the checker believes it does not.
const QUOTE: number = 0x22
const BACKSLASH: number = 0x5c
const COMMA: number = 0x2c
const COLON: number = 0x3a
const OPEN_OBJECT: number = 0x7b
const CLOSE_OBJECT: number = 0x7d
const OPEN_ARRAY: number = 0x5b
const CLOSE_ARRAY: number = 0x5d

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Parses all of `bytes`, or throws `JsonSyntaxError` with the parser's own words. */
export function parseJson(bytes: Uint8Array): unknown {
  return parseText(decodeUtf8(withoutByteOrderMark(bytes)))
}

/** Which arrays of a document are long: `true` under the name of each, below the names of the objects around it. */
export interface SlicedArrays {
  readonly [name: string]: true | SlicedArrays
}

/** How large a document may be, and how it is parsed. */
export interface SlicedParse {
  /** Fields that the document, each object around a sliced array, and each element parsed alone may have. */
  readonly maxFields?: number
  /** About how long each slice is. */
  readonly bytesPerParse?: number
}

/** The text of the error for an object with more fields than it may have. `at` is its path, empty for the document. */
export const tooManyFieldsText = (at: string, maxFields: number): string =>
  `${at === '' ? 'the body' : at}: more than ${maxFields} fields`

/**
 * Reads a whole document; if it is an object, the arrays that `sliced` names are parsed in slices. Throws
 * `JsonSyntaxError`, before it parses them, for an object with too many fields.
 */
export function* parseObjectWithArrays(
  bytes: Uint8Array,
  sliced: SlicedArrays,
  { maxFields = Number.POSITIVE_INFINITY, bytesPerParse = BYTES_PER_PARSE }: SlicedParse = {},
): Steps<unknown> {
  const scan = new Scan(bytes)
  if (scan.byte !== OPEN_OBJECT) return parseJson(bytes)
  const found = yield* parseObject(scan, sliced, { maxFields, bytesPerParse }, '')
  scan.expectEnd()
  return found
}

/** The object that begins at the scan's position. As deep as `sliced` is, no deeper. */
function* parseObject(
  scan: Scan,
  sliced: SlicedArrays,
  parse: Required<SlicedParse>,
  at: string,
): Steps<Record<string, unknown>> {
  const found: Record<string, unknown> = Object.create(null)
  let fields = 0
  for (let key = scan.enterObject(); key !== undefined; key = scan.nextKey()) {
    if (++fields > parse.maxFields) throw new JsonSyntaxError(tooManyFieldsText(at, parse.maxFields))
    const how = Object.hasOwn(sliced, key) ? sliced[key] : undefined
    const path = at === '' ? key : `${at}.${key}`
    if (how === true && scan.byte === OPEN_ARRAY) found[key] = yield* parseArray(scan, parse, path)
    else if (typeof how === 'object' && scan.byte === OPEN_OBJECT)
      found[key] = yield* parseObject(scan, how, parse, path)
    else found[key] = yield* parseValue(scan)
  }
  return found
}

/**
 * Gives `visit` the members of a document that is an object, one by one, in the order of the text; a repeated name is given
 * again. Whether the text is JSON to its end is known only when this has returned.
 */
export function* parseMembers(bytes: Uint8Array, visit: (key: string, value: unknown) => void): Steps<void> {
  const scan = new Scan(bytes)
  if (scan.byte !== OPEN_OBJECT) {
    parseJson(bytes)
    throw new JsonSyntaxError('expected an object')
  }
  let count = 0
  for (let key = scan.enterObject(); key !== undefined; key = scan.nextKey()) {
    visit(key, yield* parseValue(scan))
    if (isYieldDue(count++)) yield
  }
  scan.expectEnd()
}

function* parseValue(scan: Scan): Steps<unknown> {
  const start = scan.at
  let end = scan.skipValue()
  for (; end === UNFINISHED; end = scan.skipValue()) yield
  return parseSlice(scan.bytes, start, end)
}

/** The array that begins at the scan's position, its elements parsed in batches. */
function* parseArray(scan: Scan, { maxFields, bytesPerParse }: Required<SlicedParse>, at: string): Steps<unknown[]> {
  const elements: unknown[] = []
  let hasMore = scan.enterArray()
  if (hasMore) yield* parseGuessed(scan, bytesPerParse, elements)
  while (hasMore) {
    const start = scan.at
    let count = 0
    let end = start
    while (hasMore && end - start < bytesPerParse) {
      for (end = scan.skipValue(); end === UNFINISHED; end = scan.skipValue()) yield
      if (scan.fields > maxFields) {
        throw new JsonSyntaxError(tooManyFieldsText(`${at}[${elements.length + count}]`, maxFields))
      }
      count++
      hasMore = scan.nextElement()
    }
    const batch = parseText(`[${decodeUtf8(scan.bytes.subarray(start, end))}]`) as unknown[]
    // A batch that parses to another number of elements was cut in the wrong place: the text is not JSON.
    if (batch.length !== count) throw new JsonSyntaxError('Unexpected token')
    for (const element of batch) elements.push(element)
    yield
  }
  return elements
}

/** Moves over the elements whose borders can be guessed and adds them to `elements`; at least one is left. */
function* parseGuessed(scan: Scan, bytesPerParse: number, elements: unknown[]): Steps<void> {
  for (;;) {
    const start = scan.at
    if (scan.byte !== OPEN_OBJECT) return
    const border = scan.guessBorder(start + bytesPerParse)
    if (border === undefined) return
    const batch = parsedOrUndefined(scan.bytes, start, border.end)
    if (batch === undefined) return
    for (const element of batch) elements.push(element)
    scan.at = border.next
    yield
  }
}

/** The elements from `start` to `end`, or undefined when that is not a list of whole ones. */
function parsedOrUndefined(bytes: Uint8Array, start: number, end: number): unknown[] | undefined {
  try {
    return parseText(`[${decodeUtf8(bytes.subarray(start, end))}]`) as unknown[]
  } catch {
    return undefined
  }
}

const UNFINISHED = -1

/** Steps through the structure around the members of a container, which `JSON.parse` then looks into. */
class Scan {
  at: number
  /** Fields of the object that `skipValue` has moved over, or is in the middle of. */
  fields = 0
  /** Where in the middle of a value a pause was due, and how deep inside of it. */
  #unfinishedAt: number | undefined
  #depth = 0

  constructor(readonly bytes: Uint8Array) {
    this.at = byteOrderMarkLength(bytes)
    this.#skipSpace()
  }

  /** What stands at the position; undefined at the end. */
  get byte(): number | undefined {
    return this.bytes[this.at]
  }

  /** Enters the object at the position: the name of its first member, or undefined when there is none. */
  enterObject(): string | undefined {
    this.#step()
    if (this.byte !== CLOSE_OBJECT) return this.#key()
    this.#step()
    return undefined
  }

  /** Goes on after a member's value: the name of the next member, or undefined at the end of the object. */
  nextKey(): string | undefined {
    const byte = this.byte
    if (byte !== COMMA && byte !== CLOSE_OBJECT) throw new JsonSyntaxError("Expected '}'")
    this.#step()
    return byte === COMMA ? this.#key() : undefined
  }

  /** Enters the array at the position; false when it is empty. */
  enterArray(): boolean {
    this.#step()
    if (this.byte !== CLOSE_ARRAY) return true
    this.#step()
    return false
  }

  /** Goes on after an element; false at the end of the array. */
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
   * Moves behind a value and the space after it; gives the value's end, or `UNFINISHED` when a pause is due: call again.
   * Looks at borders only, not at what is between them.
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

  /** The last place before `before` where an object may end and the `next` one begin, unless that is far off. */
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

  /** One byte further, and over the space that follows. */
  #step(): void {
    this.at++
    this.#skipSpace()
  }

  #skipSpace(): void {
    while (isSpace(this.bytes[this.at])) this.at++
  }
}

/** Bytes of a string that are looked at one by one. Most strings end within; a search from there is for long ones. */
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

const parseSlice = (bytes: Uint8Array, start: number, end: number): unknown =>
  parseText(decodeUtf8(bytes.subarray(start, end)))

/** `bytes` without the mark that some editors put before UTF-8. */
export const withoutByteOrderMark = (bytes: Uint8Array): Uint8Array => {
  const length = byteOrderMarkLength(bytes)
  return length === 0 ? bytes : bytes.subarray(length)
}

const byteOrderMarkLength = (bytes: Uint8Array) => (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0)

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new JsonSyntaxError('the text is not valid UTF-8')
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof RangeError) throw new JsonSyntaxError('nested too deeply')
    throw new JsonSyntaxError((error as Error).message.replace(/^JSON Parse error: /, ''))
  }
}
