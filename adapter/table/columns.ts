/** Rows of cells as lines with aligned columns. Pure. */
import { cut, fit, type Style } from '../../shared/text/live-view/palette.ts'
import { visibleLine } from '../../shared/text/visible-text.ts'
import type { Look } from './look.ts'

export interface Cell {
  readonly text: string
  readonly style?: Style
  /** Numbers end in one column. */
  readonly isRight?: boolean
}

/** Columns of a cell on a terminal, except in the last column. */
const MAX_CELL_COLUMNS = 40

const GAP = '  '

/** Lines of at most `look.columns` columns. The last column takes what room there is. A column without text is left out. */
export function alignedRows(header: readonly string[], rows: readonly (readonly Cell[])[], look: Look): string[] {
  const shown = rows.map((row) => row.map((cell) => ({ ...cell, text: visibleLine(cell.text) })))
  const used = header.flatMap((_, column) => (shown.some((row) => row[column]!.text !== '') ? [column] : []))
  const widths = new Map(used.map((column) => [column, columnWidth(column, header, shown, look)]))
  const line = (row: readonly Cell[]) => {
    const cells = used.map((column) => {
      const { text, style = 'plain', isRight = false } = row[column]!
      const width = widths.get(column)!
      if (isRight) return look.paint(style, cut(text, width).padStart(width))
      return look.paint(style, column === used.at(-1) ? text : fit(text, width))
    })
    return cutToScreen(cells.join(GAP), look)
  }
  const heads = header.map(
    (text, column): Cell => ({ text, style: 'dim', isRight: rows[0]?.[column]?.isRight ?? false }),
  )
  return [line(heads), ...shown.map(line)]
}

function columnWidth(
  column: number,
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  { columns }: Look,
): number {
  let width = Bun.stringWidth(header[column]!)
  for (const row of rows) width = Math.max(width, Bun.stringWidth(row[column]!.text))
  return Number.isFinite(columns) ? Math.min(width, MAX_CELL_COLUMNS) : width
}

/** A name and its value on each line. */
export function alignedFields(fields: readonly (readonly [name: string, value: Cell])[], look: Look): string[] {
  const width = Math.max(0, ...fields.map(([name]) => Bun.stringWidth(name)))
  return fields.map(([name, { text, style = 'plain' }]) =>
    cutToScreen(`${look.paint('dim', fit(name, width))}${GAP}${look.paint(style, visibleLine(text))}`, look),
  )
}

export const cutToScreen = (line: string, { columns }: Look): string =>
  Number.isFinite(columns) ? cut(line, columns) : line
