/** A runtime service as `--runtime-url` and `POST /runtimes` name it: `gpu-1=http://10.0.0.7:18080,gpu,zone=a`. Pure. */
import {
  DEFAULT_RUNTIME,
  MAX_RUNTIME_LABELS,
  MAX_RUNTIMES,
  RUNTIME_LABEL,
  RUNTIME_LABEL_RULE,
  RUNTIME_LABEL_VALUE,
  RUNTIME_LABEL_VALUE_RULE,
  RUNTIME_NAME,
  RUNTIME_NAME_RULE,
  type RuntimeLabels,
} from '../contract/runtime-names.ts'
import { shownUrl } from '../http/shown-url.ts'
import { plainSocketUrl } from '../http/socket-address.ts'
import { isObject } from '../text/json.ts'

export interface RuntimeEntry {
  readonly name: string
  /** Without a slash at the end. */
  readonly url: string
  readonly labels: RuntimeLabels
  /** Its own token; empty for none. Undefined: the token that control has for those of `--runtime-url`. */
  readonly token?: string | undefined
}

const name = new RegExp(RUNTIME_NAME)
const label = new RegExp(RUNTIME_LABEL)
const labelValue = new RegExp(RUNTIME_LABEL_VALUE, 'u')

/** Characters of a caller's text in an error. */
const MAX_SHOWN = 100

const shown = (value: string): string => JSON.stringify(value.slice(0, MAX_SHOWN)).toWellFormed()

export const isRuntimeName = (text: string): boolean => name.test(text)

/** The fault of the labels of a runtime service or of a placement; `at` is their path. */
export function runtimeLabelsFault(at: string, labels: unknown): string | undefined {
  if (!isObject(labels)) return `${at}: expected object of strings`
  const entries = Object.entries(labels)
  if (entries.length > MAX_RUNTIME_LABELS) {
    return `${at}: expected at most ${MAX_RUNTIME_LABELS} labels, got ${entries.length}`
  }
  for (const [key, value] of entries) {
    if (!label.test(key)) return `${at}: expected names of ${RUNTIME_LABEL_RULE}, got ${shown(key)}`
    if (typeof value !== 'string') return `${at}.${key}: expected string ("" for a label without a value)`
    if (!labelValue.test(value)) return `${at}.${key}: expected ${RUNTIME_LABEL_VALUE_RULE}`
  }
  return undefined
}

/** Characters of an address. */
const MAX_URL_CHARACTERS = 2_048

const WITH_NAME = /^([^=:/?#,]*)=(.*)$/s

/** An http: or https: address without query, and without a slash at its end; undefined if `text` is none. */
export function baseUrlOf(text: string): string | undefined {
  const url = text.length > MAX_URL_CHARACTERS ? null : URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  return /[?#]/.test(url.href) ? undefined : url.href.replace(/\/+$/, '')
}

/** The same, or the address of a Unix socket. */
export const runtimeUrlOf = (text: string): string | undefined => baseUrlOf(text) ?? plainSocketUrl(text)

/** The entry, or the expected form of the part that is wrong. */
export function runtimeEntry(text: string): RuntimeEntry | string {
  const [, name = DEFAULT_RUNTIME, rest = text] = WITH_NAME.exec(text) ?? []
  if (!isRuntimeName(name)) return `a name of ${RUNTIME_NAME_RULE} before "="`
  const [address = '', ...given] = rest.split(',')
  const url = runtimeUrlOf(address)
  if (url === undefined) {
    return 'an http: or https: address without query, such as http://127.0.0.1:18080 or gpu-1=http://10.0.0.7:18080,gpu,zone=a, or unix:/path'
  }
  const labels = runtimeLabels(given)
  if (typeof labels === 'string') return `${labels} (repeat the flag for another runtime service)`
  return { name, url, labels }
}

/** The labels in `gpu` and `zone=a`, or the expected form of what is wrong. `gpu` is `gpu=`. */
export function runtimeLabels(given: readonly string[]): RuntimeLabels | string {
  const labels = new Map<string, string>()
  for (const text of given) {
    const [, key = text, value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
    if (labels.has(key)) return `each label once, got ${JSON.stringify(key)} twice`
    labels.set(key, value)
  }
  const found = Object.fromEntries(labels)
  const fault = runtimeLabelsFault('labels', found)
  return fault === undefined ? found : `labels as in gpu,zone=a: ${fault}`
}

/** The entries in a list with spaces between them, or the expected form of what is wrong. */
export function runtimeEntries(text: string): readonly RuntimeEntry[] | string {
  const entries = new Map<string, RuntimeEntry>()
  for (const part of text.split(BETWEEN_ENTRIES).filter((each) => each !== '')) {
    const entry = runtimeEntry(part)
    if (typeof entry === 'string') return entry
    if (entries.has(entry.name)) {
      return `a name for each runtime service, as in gpu-1=http://10.0.0.7:18080: two are called ${entry.name}`
    }
    const twin = twinOf(entry, [...entries.values()])
    if (twin !== undefined) {
      return `one name for each address: ${twin.name} and ${entry.name} are both at ${shownUrl(entry.url)}`
    }
    entries.set(entry.name, entry)
    if (entries.size > MAX_RUNTIMES) return `at most ${MAX_RUNTIMES} runtime services`
  }
  return entries.size === 0 ? 'at least one address' : [...entries.values()]
}

/** One of `entries` with the address of `entry` under another name: a runtime service that would count as two. */
export const twinOf = <E extends RuntimeEntry>({ name, url }: RuntimeEntry, entries: readonly E[]): E | undefined =>
  entries.find((each) => each.name !== name && shownUrl(each.url) === shownUrl(url))

/** Neither an address nor a label has spaces. */
const BETWEEN_ENTRIES = /[\s\0]+/
