/** The headers that graphs and schedules give their callbacks. Pure. */
import {
  CALLBACK_OWN_HEADERS,
  HEADER_NAME,
  HEADER_VALUE,
  MAX_CALLBACK_HEADER_CHARACTERS,
  MAX_CALLBACK_HEADERS,
} from '../../shared/contract/callbacks.ts'
import { SECRET_TEXT_FIELDS } from '../../shared/contract/secrets.ts'
import { type SecretText, secretTextIn } from '../../shared/request/secret-text.ts'
import { didYouMean, quoted } from '../../shared/request/unknown-names.ts'
import { isObject } from '../../shared/text/json.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'

/** What is wrong with `headers` of the field `field`; undefined if nothing is. */
export function callbackHeadersFault(headers: unknown, field = 'callback'): string | undefined {
  if (headers == null) return undefined
  if (!isObject(headers)) return `${field}.headers: expected object`
  const entries = Object.entries(headers)
  if (entries.length > MAX_CALLBACK_HEADERS)
    return `${field}.headers: expected at most ${MAX_CALLBACK_HEADERS} headers, got ${entries.length}`
  const seen = new Set<string>()
  for (const [name, value] of entries) {
    if (!HEADER_NAME.test(name)) return `${field}.headers: ${quoted(name)} is no name of a header`
    const at = `${field}.headers.${name}`
    const known = name.toLowerCase()
    if (CALLBACK_OWN_HEADERS.includes(known)) return `${at}: each callback has one of its own (leave it out)`
    if (seen.has(known)) return `${at}: given twice`
    seen.add(known)
    const fault = valueFault(value, MAX_CALLBACK_HEADER_CHARACTERS - name.length)
    if (fault !== undefined) return `${at}${fault}`
  }
  return undefined
}

function valueFault(value: unknown, room: number): string | undefined {
  const secret = secretIn(value)
  if (typeof secret === 'string') return `.${secret}`
  const text = secret === undefined ? value : secret.prefix + secret.suffix
  if (typeof text !== 'string') return ': expected string, or object with $secret'
  if (text.length > room) return `: expected at most ${MAX_CALLBACK_HEADER_CHARACTERS} characters with its name`
  return HEADER_VALUE.test(text) ? undefined : ': expected printable ASCII in one line'
}

/** The secret that the value of a header is; undefined for another value. Returns the fault of one that is invalid. */
export function secretIn(value: unknown): SecretText | string | undefined {
  if (!isObject(value)) return undefined
  const other = Object.keys(value).find((key) => !SECRET_TEXT_FIELDS.includes(key))
  if (other !== undefined) return `${other}: unknown field${didYouMean(nearestName(other, SECRET_TEXT_FIELDS))}`
  return secretTextIn(value)
}
