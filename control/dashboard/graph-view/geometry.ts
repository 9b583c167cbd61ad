/** Positions and paths of a laid-out graph, in CSS pixels. Pure. */
import type { Layout, Line } from './layout.ts'

export const BOX_WIDTH = 176
export const BOX_HEIGHT = 44
const COLUMN = BOX_WIDTH + 56
const ROW = BOX_HEIGHT + 14
const MARGIN = 20

export const leftOf = (layer: number): number => MARGIN + layer * COLUMN
export const topOf = (row: number): number => MARGIN + row * ROW

export const widthOf = (layout: Layout): number => 2 * MARGIN + (layout.layers - 1) * COLUMN + BOX_WIDTH
export const heightOf = (layout: Layout): number => 2 * MARGIN + Math.max(0, layout.rows - 1) * ROW + BOX_HEIGHT

/** A smooth path from the right side of a box, along its bends, to the left side of another. */
export function pathOf(line: Line, firstLayer: number): string {
  const middle = (row: number) => (topOf(row) + BOX_HEIGHT / 2).toFixed(1)
  let path = `M${leftOf(firstLayer) + BOX_WIDTH} ${middle(line.rows[0]!)}`
  for (let step = 1; step < line.rows.length; step++) {
    const right = leftOf(firstLayer + step)
    const left = right - (COLUMN - BOX_WIDTH)
    const bend = (COLUMN - BOX_WIDTH) / 2
    const [from, to] = [middle(line.rows[step - 1]!), middle(line.rows[step]!)]
    path += from === to ? `H${right}` : `C${left + bend} ${from} ${right - bend} ${to} ${right} ${to}`
    if (step < line.rows.length - 1) path += `H${right + BOX_WIDTH}`
  }
  return path
}
