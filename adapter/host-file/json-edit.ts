/**
 * Puts an entry into a JSON file of a host. Everything else stays, comments included; lines beside the entry may be
 * formatted anew. Pure.
 *
 * The result is parsed again: if it says anything other than the file with the entry, the file is refused.
 */
import { isDeepStrictEqual } from 'node:util'
import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { isObject } from '../../shared/text/json.ts'
import { HostFileFault } from './fault.ts'

type JsonObject = Record<string, unknown>

/** What to put in: the value of the member `name` of the object `key` of the file, made of its present value. */
export interface JsonEdit {
  readonly key: string
  readonly name: string
  entry(present: JsonObject | undefined): JsonObject
}

const BYTE_ORDER_MARK = '\uFEFF'

/** The text of the file with the entry. The same text if it is there already. Throws `HostFileFault`. */
export function editedJson(source: string, { key, name, entry }: JsonEdit): string {
  const mark = source.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : ''
  const text = source.slice(mark.length)
  const before = parsed(text)
  const servers = ownValue(before, key)
  if (servers !== undefined && !isObject(servers)) throw new HostFileFault(`"${key}" is no object`)
  const present = servers === undefined ? undefined : ownValue(servers, name)
  if (present !== undefined && !isObject(present)) throw new HostFileFault(`"${name}" in "${key}" is no object`)
  const value = entry(present)
  if (isDeepStrictEqual(present, value)) return source
  const unit = /\n([ \t]+)"/.exec(text)?.[1] ?? '  '
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const formattingOptions = { insertSpaces: !unit.includes('\t'), tabSize: unit.length, eol }
  const after = applyEdits(text, modify(text, [key, name], value, { formattingOptions }))
  if (!isDeepStrictEqual(parsed(after), { ...before, [key]: { ...servers, [name]: value } })) {
    throw new HostFileFault('it cannot be edited without changing something else (is a name there twice?)')
  }
  return mark + (text.trim() === '' ? `${after}\n` : after)
}

const ownValue = (object: JsonObject, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined)

/** The object in the text; an empty one if there is none. */
function parsed(text: string): JsonObject {
  const errors: ParseError[] = []
  try {
    const found = parse(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
    const [error] = errors
    if (error !== undefined) {
      const line = text.slice(0, error.offset).split('\n').length
      throw new HostFileFault(`it is not valid JSON: ${printParseErrorCode(error.error)} in line ${line}`)
    }
    if (found === undefined) return {}
    const value = Bun.JSONC.parse(text) // keeps a member with the name __proto__
    if (isObject(value)) return value
  } catch (error) {
    throw error instanceof RangeError ? new HostFileFault('it is nested too deep') : error
  }
  throw new HostFileFault('it holds no JSON object')
}
