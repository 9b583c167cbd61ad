/**
 * A reader for JSON that is too large for one call of `JSON.parse`, which blocks the event loop for a quarter of a
 * second at 64 MiB. Pure.
 *
 * The reader scans the bytes of one container for the borders of its members: quotes, escapes and depth. It passes each
 * member to `JSON.parse` and yields in between. It accepts and refuses what `JSON.parse` accepts and refuses, which a
 * property test compares. The one difference: members of an object keep the order of the text, whatever their names.
 *
 * In an array of objects the reader guesses borders: an object probably ends before each `},{`. If `JSON.parse` accepts
 * the text up to there as a list, the guess was right. If not, the reader scans the bytes of the array. Guessing reads
 * a list of 100,000 tasks in half of the time.
 */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { decodeUtf8, JsonSyntaxError, parseJson, parseText } from '../../shared/text/json-bytes.ts'
import { OPEN_ARRAY, OPEN_OBJECT, parseSlice, Scan, UNFINISHED } from './scan.ts'

/** Bytes of members that one call of `JSON.parse` parses. Fewer would make the calls the larger part of the cost. */
const BYTES_PER_PARSE = 64 * 1024

/** The arrays of a document to parse in steps: `true` under the name of each, nested as in the document. */
export interface LongArrays {
  readonly [name: string]: true | LongArrays
}

export interface ParseOptions {
  /** Maximum number of fields of the document, of each object around a long array, and of each element of one. */
  readonly maxFields?: number
  /** Bytes of elements per call of `JSON.parse`, about. */
  readonly bytesPerParse?: number
}

/** The text of the error for an object with more fields than it may have. `at` is its path, empty for the document. */
export const tooManyFieldsText = (at: string, maxFields: number): string =>
  `${at === '' ? 'the body' : at}: more than ${maxFields} fields`

/**
 * Parses a whole document. If it is an object, parses the arrays that `arrays` names in steps. Throws
 * `JsonSyntaxError`, for an object with too many fields before parsing it.
 */
export function* parseObjectWithArrays(
  bytes: Uint8Array,
  arrays: LongArrays,
  { maxFields = Number.POSITIVE_INFINITY, bytesPerParse = BYTES_PER_PARSE }: ParseOptions = {},
): Steps<unknown> {
  const scan = new Scan(bytes)
  if (scan.byte !== OPEN_OBJECT) return parseJson(bytes)
  const found = yield* parseObject(scan, arrays, { maxFields, bytesPerParse }, '')
  scan.expectEnd()
  return found
}

/** The object at the scan's position. Recurses as deep as `arrays` is nested, no deeper. */
function* parseObject(
  scan: Scan,
  arrays: LongArrays,
  parse: Required<ParseOptions>,
  at: string,
): Steps<Record<string, unknown>> {
  const found: Record<string, unknown> = Object.create(null)
  let fields = 0
  for (let key = scan.enterObject(); key !== undefined; key = scan.nextKey()) {
    if (++fields > parse.maxFields) throw new JsonSyntaxError(tooManyFieldsText(at, parse.maxFields))
    const how = Object.hasOwn(arrays, key) ? arrays[key] : undefined
    const path = at === '' ? key : `${at}.${key}`
    if (how === true && scan.byte === OPEN_ARRAY) found[key] = yield* parseArray(scan, parse, path)
    else if (typeof how === 'object' && scan.byte === OPEN_OBJECT)
      found[key] = yield* parseObject(scan, how, parse, path)
    else found[key] = yield* parseValue(scan)
  }
  return found
}

/**
 * Calls `visit` with each member of a document that is an object, in the order of the text, also for repeated names.
 * The text is known to be JSON to its end only when this has returned.
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

/** The array at the scan's position. Its elements are parsed in batches. */
function* parseArray(scan: Scan, { maxFields, bytesPerParse }: Required<ParseOptions>, at: string): Steps<unknown[]> {
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

/** Parses the elements whose borders can be guessed, into `elements`. Leaves at least the last element to the scan. */
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

/** The elements from `start` to `end`, or undefined when that text is not a list of whole elements. */
function parsedOrUndefined(bytes: Uint8Array, start: number, end: number): unknown[] | undefined {
  try {
    return parseText(`[${decodeUtf8(bytes.subarray(start, end))}]`) as unknown[]
  } catch {
    return undefined
  }
}
