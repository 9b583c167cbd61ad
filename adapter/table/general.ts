/** Any answer as text for people: fields with their values, lists of objects as tables. Pure. */
import { isObject } from '../../shared/text/json.ts'
import { visibleLine } from '../../shared/text/visible-text.ts'
import { alignedFields, alignedRows, type Cell, cutToScreen } from './columns.ts'
import type { Look } from './look.ts'
import { stateCell } from './words.ts'

/** Objects deeper than this are printed as JSON. */
const MAX_DEPTH = 4

export function generalTable(data: object, look: Look, depth = 1): string[] {
  const fields: [string, Cell][] = []
  const blocks: string[][] = []
  for (const [name, value] of Object.entries(data)) {
    if (value === undefined) continue
    const block = depth < MAX_DEPTH ? blockOf(value, look, depth) : undefined
    if (block === undefined) fields.push([visibleLine(name), cellOf(name, value)])
    else blocks.push([look.paint('bold', visibleLine(name)), ...block])
  }
  const parts = [...(fields.length > 0 ? [alignedFields(fields, look)] : []), ...blocks]
  return parts.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]))
}

/** The lines of a value that does not fit on one. */
function blockOf(value: unknown, look: Look, depth: number): string[] | undefined {
  if (typeof value === 'string') return value.includes('\n') ? textLines(value, look) : undefined
  if (isObject(value)) {
    return Object.keys(value).length === 0 ? undefined : indented(generalTable(value, look, depth + 1))
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every(isObject)) return undefined
  const names = [...new Set(value.flatMap((item) => Object.keys(item)))]
  return alignedRows(
    names,
    value.map((item) => names.map((name) => cellOf(name, item[name]))),
    look,
  )
}

const indented = (lines: readonly string[]): string[] => lines.map((line) => (line === '' ? '' : `  ${line}`))

/** The lines of a text that a task wrote. */
export const textLines = (text: string, look: Look): string[] =>
  indented(text.trimEnd().split('\n').map(visibleLine)).map((line) => cutToScreen(line, look))

function cellOf(name: string, value: unknown): Cell {
  if (value === undefined || value === null) return { text: '' }
  if (typeof value === 'number') return { text: String(value), isRight: true }
  if (typeof value !== 'object')
    return name === 'status' || name === 'state' ? stateCell(String(value)) : { text: String(value) }
  const isPlainList = Array.isArray(value) && value.every((item) => typeof item !== 'object')
  return { text: isPlainList ? value.join(', ') : JSON.stringify(value) }
}
