/**
 * Puts a table into a TOML file of a host, and leaves everything else as it is, comments included. Pure.
 *
 * Lines from the header of the table to the next header are replaced. The result is parsed again: if it says anything other
 * than the file with the table, as after an inline table, the file is refused.
 */
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../shared/contract/errors.ts'
import { isObject } from '../../shared/text/json.ts'
import { HostFileFault } from './fault.ts'

type Table = Record<string, unknown>

export interface TomlEdit {
  /** The table is `[key.name]`. Both are bare keys. */
  readonly key: string
  readonly name: string
  entry(present: Table | undefined): Table
}

/** The text of the file with the table. The same text if it is there already. Throws `HostFileFault`. */
export function editedToml(source: string, { key, name, entry }: TomlEdit): string {
  const before = parsed(source)
  const tables = Object.hasOwn(before, key) ? before[key] : undefined
  if (tables !== undefined && !isObject(tables)) throw new HostFileFault(`${key} is no table`)
  const present = tables !== undefined && Object.hasOwn(tables, name) ? tables[name] : undefined
  if (present !== undefined && !isObject(present)) throw new HostFileFault(`${key}.${name} is no table`)
  const table = entry(present)
  if (isDeepStrictEqual(present, table)) return source
  const after = replaced(source, `${key}.${name}`, shownTable(`${key}.${name}`, table))
  if (isDeepStrictEqual(reparsed(after), { ...before, [key]: { ...tables, [name]: table } })) return after
  throw new HostFileFault(
    `it has ${key}.${name} in a form that cannot be edited, such as an inline table: remove that first`,
  )
}

function parsed(text: string): Table {
  try {
    return Bun.TOML.parse(text) as Table
  } catch (error) {
    throw new HostFileFault(`it is not valid TOML: ${messageOf(error)}`)
  }
}

function reparsed(text: string): Table | undefined {
  try {
    return Bun.TOML.parse(text) as Table
  } catch {
    return undefined
  }
}

/** `[key.name]` with its values; tables in it are inline. Throws `HostFileFault` for a value that cannot be written. */
export const shownTable = (path: string, table: Table): string =>
  `[${path}]\n${Object.entries(table)
    .map(([key, value]) => `${shownKey(key)} = ${shownValue(value)}\n`)
    .join('')}`

function shownValue(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new HostFileFault(`the table is nested more than ${MAX_DEPTH} deep`)
  if (typeof value === 'string') return JSON.stringify(value) // a basic string of TOML has the escapes of JSON
  if (typeof value === 'boolean' || Number.isFinite(value)) return String(value)
  if (Array.isArray(value)) return `[${value.map((item) => shownValue(item, depth + 1)).join(', ')}]`
  if (!isObject(value)) throw new HostFileFault(`the table holds a value that cannot be written: ${String(value)}`)
  const members = Object.entries(value).map(([key, inner]) => `${shownKey(key)} = ${shownValue(inner, depth + 1)}`)
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}

/** Levels of a table. Those of hosts have two. */
const MAX_DEPTH = 20

const shownKey = (key: string): string => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))

/** The text with `table` instead of the sections of `path` and below it; at the end if there are none. */
function replaced(source: string, path: string, table: string): string {
  const lineEnd = source.includes('\r\n') ? '\r\n' : '\n'
  const shown = table.replaceAll('\n', lineEnd)
  const lines = source === '' ? [] : source.split(/(?<=\n)/)
  const kept: string[] = []
  let hasTable = false
  for (let at = 0; at < lines.length; ) {
    const header = headerOf(lines[at]!)
    if (header === undefined || !`${header}.`.startsWith(`${path}.`)) {
      kept.push(lines[at++]!)
      continue
    }
    if (!hasTable) kept.push(shown)
    hasTable = true
    at = endOfSection(lines, at)
  }
  if (hasTable) return kept.join('')
  const text = source === '' || source.endsWith('\n') ? source : source + lineEnd
  return `${text}${text.trim() === '' ? '' : lineEnd}${shown}`
}

/** The line behind the section that begins at `start`. Comments and empty lines before the next header belong to that. */
function endOfSection(lines: readonly string[], start: number): number {
  let next = start + 1
  while (next < lines.length && headerOf(lines[next]!) === undefined) next++
  while (next - 1 > start && /^(#.*)?$/.test(lines[next - 1]!.trim())) next--
  return next
}

const HEADER = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$/

/** The path in a header of a table, with bare keys where they are quoted; undefined for other lines. */
const headerOf = (line: string): string | undefined =>
  HEADER.exec(line.trimEnd())?.[1]
    ?.split('.')
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'))
    .join('.')
