/**
 * Puts an entry into a JSON file of a host, and leaves everything else as it is, comments included. Pure.
 *
 * The edit changes the text at one place. Its result is parsed again: if it says anything other than the file with the
 * entry, the file is refused.
 */
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../shared/contract/errors.ts'
import { isObject } from '../../shared/text/json.ts'
import { HostFileFault } from './fault.ts'
import { type Member, type ObjectPlace, objectAt, type PlainJson, plainJson, skipSpace } from './jsonc.ts'

type JsonObject = Record<string, unknown>

/** What to put in: the value of the member `name` of the object `key` of the file, made of its present value. */
export interface JsonEdit {
  readonly key: string
  readonly name: string
  entry(present: JsonObject | undefined): JsonObject
}

/** The text of the file with the entry. The same text if it is there already. Throws `HostFileFault`. */
export function editedJson(source: string, { key, name, entry }: JsonEdit): string {
  const mark = source.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : ''
  const text = source.slice(mark.length)
  const plain = plainJson(text)
  if (plain.text.trim() === '') {
    const whole = { [key]: { [name]: entry(undefined) } }
    const comments = text.trim() === '' ? '' : `${text.trimEnd()}\n`
    return mark + checked(`${comments}${JSON.stringify(whole, null, 2)}\n`, whole)
  }
  const before = parsed(plain.text)
  const servers = ownValue(before, key)
  if (servers !== undefined && !isObject(servers)) throw new HostFileFault(`"${key}" is no object`)
  const present = servers === undefined ? undefined : ownValue(servers, name)
  if (present !== undefined && !isObject(present)) throw new HostFileFault(`"${name}" in "${key}" is no object`)
  const value = entry(present)
  if (isDeepStrictEqual(present, value)) return source
  const after = edited({ text, plain, layout: layoutOf(text) }, [key, name], value)
  return mark + checked(after, { ...before, [key]: { ...servers, [name]: value } })
}

/** The text if it says what is expected. */
function checked(after: string, expected: JsonObject): string {
  if (isDeepStrictEqual(parsed(plainJson(after).text), expected)) return after
  throw new HostFileFault('it cannot be edited without changing something else (is a name there twice?)')
}

const BYTE_ORDER_MARK = '\uFEFF'

const ownValue = (object: JsonObject, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined)

function parsed(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new HostFileFault(`it is not valid JSON: ${messageOf(error)}`)
  }
  if (isObject(value)) return value
  throw new HostFileFault('it holds no JSON object')
}

interface Layout {
  readonly lineEnd: string
  /** One level of indentation. */
  readonly unit: string
}

function layoutOf(text: string): Layout {
  const unit = /\n([ \t]+)"/.exec(text)?.[1] ?? '  '
  return { lineEnd: text.includes('\r\n') ? '\r\n' : '\n', unit }
}

interface Document {
  readonly text: string
  readonly plain: PlainJson
  readonly layout: Layout
}

function edited(document: Document, [key, name]: readonly [string, string], value: JsonObject): string {
  const { text, plain } = document
  const root = objectAt(plain.text, skipSpace(plain.text, 0))
  const servers = lastNamed(root, key)
  if (servers === undefined) return withMember(document, root, key, { [name]: value })
  const inner = objectAt(plain.text, servers.valueStart)
  const present = lastNamed(inner, name)
  if (present === undefined) return withMember(document, inner, name, value)
  const shown = shownValue(value, indentAt(text, present.start), document.layout)
  return text.slice(0, present.valueStart) + shown + text.slice(present.valueEnd)
}

/** Of members with the same name the last one counts, as in every reader of JSON. */
const lastNamed = ({ members }: ObjectPlace, name: string): Member | undefined =>
  members.findLast(({ key }) => key === name)

/** The text with a new last member of `object`. */
function withMember(document: Document, object: ObjectPlace, name: string, value: JsonObject): string {
  const { text, layout } = document
  const outer = indentAt(text, object.open)
  const last = object.members.at(-1)
  const isOnOwnLine = last !== undefined && /[\r\n]/.test(text.slice(object.open, last.start))
  const indent = isOnOwnLine ? indentAt(text, last.start) : outer + layout.unit
  const member = `${layout.lineEnd}${indent}${JSON.stringify(name)}: ${shownValue(value, indent, layout)}`
  const closing = /[\r\n]/.test(text.slice(last?.valueEnd ?? object.open, object.close))
    ? ''
    : `${layout.lineEnd}${outer}`
  if (last === undefined) return inserted(text, endOfLine(document, object.open + 1, object.close), member + closing)
  const place = endOfLine(document, last.valueEnd, object.close)
  const hasComma = document.plain.commas.some((at) => at >= last.valueEnd && at < place)
  return inserted(inserted(text, place, member + closing), last.valueEnd, hasComma ? '' : ',')
}

const inserted = (text: string, at: number, more: string): string => text.slice(0, at) + more + text.slice(at)

/** The end of the line of `from` if only spaces, commas and comments of that line come before it; else `from`. */
function endOfLine({ text, plain }: Document, from: number, close: number): number {
  let at = from
  while (at < close && text[at] !== '\n' && text[at] !== '\r') {
    const comment = plain.comments.find(([start]) => start === at)
    if (comment !== undefined) {
      if (/[\r\n]/.test(text.slice(...comment))) return from
      at = comment[1]
    } else if (/[ \t]/.test(plain.text[at]!)) at++
    else return from
  }
  return at >= close ? from : at
}

/** The indentation of the line with the offset `at`. */
function indentAt(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at)
  return /^[ \t]*/.exec(line)![0]
}

const shownValue = (value: JsonObject, indent: string, { unit, lineEnd }: Layout): string =>
  JSON.stringify(value, null, unit).replaceAll('\n', `${lineEnd}${indent}`)
