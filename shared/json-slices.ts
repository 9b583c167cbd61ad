/**
 * JSON that is too large to parse in one go.
 *
 * `JSON.parse` of 64 MiB holds the event loop for a quarter of a second. These readers find the borders of the members
 * of one container by looking at its bytes (quotes, escapes, depth), then hand each member to `JSON.parse`, pausing in
 * between. They accept and refuse exactly what `JSON.parse` does (a property test compares the two), except that a
 * member keeps its place: the order of an object's members is the order in the text, whatever their names.
 */
import { type Slices, STEPS_PER_YIELD } from './slices.ts'

/** The text is not JSON, or not UTF-8. */
export class JsonSyntaxError extends Error {
  override name = 'JsonSyntaxError'
}

/** Bytes scanned between two pauses: about a quarter of a millisecond. */
const BYTES_PER_YIELD = 128 * 1024

/** Members parsed by one call of `JSON.parse`: enough to make the call itself cheap. */
const BYTES_PER_PARSE = 64 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Parses all of `bytes`, or throws `JsonSyntaxError` with the parser's own words. */
export function parseJson(bytes: Uint8Array): unknown {
  return parseText(decodeUtf8(bytes.subarray(byteOrderMarkLength(bytes))))
}

/** Reads a whole document whose top level is an object, slicing the array under `sliced` and parsing the rest. */
export function* parseObjectWithArray(bytes: Uint8Array, sliced: string): Slices<unknown> {
  const start = skipSpace(bytes, byteOrderMarkLength(bytes))
  if (bytes[start] !== OPEN_OBJECT) return parseJson(bytes)
  const found: Record<string, unknown> = Object.create(null)
  for (const member of yield* borders(bytes, start)) {
    const key = memberKey(bytes, member)
    const isSliced = key === sliced && bytes[member.valueStart] === OPEN_ARRAY
    found[key] = isSliced
      ? yield* parseArray(bytes, member.valueStart, member.end)
      : parseText(decodeUtf8(bytes.subarray(member.valueStart, member.end)))
  }
  return found
}

/** The members of a document that is an object, in the order of the text. A repeated name is given again. */
export function* parseMembers(bytes: Uint8Array): Slices<[key: string, value: unknown][]> {
  const start = skipSpace(bytes, byteOrderMarkLength(bytes))
  if (bytes[start] !== OPEN_OBJECT) {
    parseJson(bytes)
    throw new JsonSyntaxError('expected an object')
  }
  const members: [string, unknown][] = []
  for (const member of yield* borders(bytes, start)) {
    const value = parseText(decodeUtf8(bytes.subarray(member.valueStart, member.end)))
    members.push([memberKey(bytes, member), value])
    if (members.length % STEPS_PER_YIELD === 0) yield
  }
  return members
}

type Member = { start: number; keyEnd: number; valueStart: number; end: number }

/** The array in `bytes[start..end]`, its elements parsed in batches. */
function* parseArray(bytes: Uint8Array, start: number, end: number): Slices<unknown[]> {
  const elements: unknown[] = []
  const found = yield* borders(bytes.subarray(0, end), start)
  let batch = 0
  for (let i = 0; i < found.length; i++) {
    const isLast = i === found.length - 1
    if (!isLast && found[i]!.end - found[batch]!.start < BYTES_PER_PARSE) continue
    const text = decodeUtf8(bytes.subarray(found[batch]!.start, found[i]!.end))
    const parsed = parseText(`[${text}]`) as unknown[]
    // A batch that parses to another number of elements was cut in the wrong place: the text is not JSON.
    if (parsed.length !== i - batch + 1) throw new JsonSyntaxError('Unexpected token')
    for (const element of parsed) elements.push(element)
    batch = i + 1
    yield
  }
  return elements
}

/** Where the members of the container at `start` begin and end. Checks the structure around them, not the members. */
function* borders(bytes: Uint8Array, start: number): Slices<Member[]> {
  const isObject = bytes[start] === OPEN_OBJECT
  const close = isObject ? CLOSE_OBJECT : CLOSE_ARRAY
  const members: Member[] = []
  let at = skipSpace(bytes, start + 1)
  let pauseAt = at + BYTES_PER_YIELD
  let depth = 0
  let member: Member = { start: at, keyEnd: -1, valueStart: isObject ? -1 : at, end: -1 }
  const isEmpty = bytes[at] === close
  while (at < bytes.length) {
    if (at >= pauseAt) {
      pauseAt = at + BYTES_PER_YIELD
      yield
    }
    const byte = bytes[at]!
    if (byte === QUOTE) {
      const stringStart = at
      at = stringEnd(bytes, at)
      if (isObject && depth === 0 && member.keyEnd < 0) {
        if (stringStart !== member.start) throw new JsonSyntaxError('Property name must be a string literal')
        member.keyEnd = at
        const colon = skipSpace(bytes, at)
        if (bytes[colon] !== COLON) throw new JsonSyntaxError("Expected ':' before value in object property definition")
        member.valueStart = skipSpace(bytes, colon + 1)
        at = member.valueStart
      }
      continue
    }
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++
    else if (depth === 0 && (byte === COMMA || byte === close)) {
      if (!(isEmpty && byte === close)) {
        member.end = trimSpace(bytes, at)
        if (member.valueStart < 0) throw new JsonSyntaxError('Property name must be a string literal')
        if (member.end <= member.valueStart)
          throw new JsonSyntaxError(`Unexpected token '${String.fromCharCode(byte)}'`)
        members.push(member)
      }
      if (byte === close) {
        const rest = skipSpace(bytes, at + 1)
        if (rest !== bytes.length) throw new JsonSyntaxError('Unable to parse: unexpected text after the end')
        return members
      }
      at = skipSpace(bytes, at + 1)
      member = { start: at, keyEnd: -1, valueStart: isObject ? -1 : at, end: -1 }
      continue
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      if (depth === 0) throw new JsonSyntaxError(`Unexpected token '${String.fromCharCode(byte)}'`)
      depth--
    }
    at++
  }
  throw new JsonSyntaxError(isObject ? "Expected '}'" : "Expected ']'")
}

/** The index after the closing quote of the string that opens at `at`. */
function stringEnd(bytes: Uint8Array, at: number): number {
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

function memberKey(bytes: Uint8Array, member: Member): string {
  return parseText(decodeUtf8(bytes.subarray(member.start, member.keyEnd))) as string
}

const skipSpace = (bytes: Uint8Array, at: number) => {
  while (isSpace(bytes[at])) at++
  return at
}

/** The end of what stands before `at`, without trailing space. */
const trimSpace = (bytes: Uint8Array, at: number) => {
  while (isSpace(bytes[at - 1])) at--
  return at
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
