/** Positions and paths of a laid-out graph, in CSS pixels. Pure. */
import type { Layout, Line } from './layout.ts'

export const BOX_WIDTH = 176
export const BOX_HEIGHT = 44
const MARGIN = 20

/** Layers follow one another from left to right, or from top to bottom. */
export type Drawing = Layout & { readonly isDown: boolean }

/** Sizes along the layers and across them: of a box, and from one box to the next. */
interface Axes {
  readonly box: number
  readonly layer: number
  readonly boxAcross: number
  readonly row: number
}
const RIGHT: Axes = { box: BOX_WIDTH, layer: BOX_WIDTH + 56, boxAcross: BOX_HEIGHT, row: BOX_HEIGHT + 14 }
const DOWN: Axes = { box: BOX_HEIGHT, layer: BOX_HEIGHT + 56, boxAcross: BOX_WIDTH, row: BOX_WIDTH + 20 }
const axesOf = (isDown: boolean): Axes => (isDown ? DOWN : RIGHT)

const along = (axes: Axes, layer: number): number => MARGIN + layer * axes.layer
const across = (axes: Axes, row: number): number => MARGIN + row * axes.row

/** The left upper corner of a box. */
export function cornerOf({ layerOf, rowOf, isDown }: Drawing, box: number): { readonly x: number; readonly y: number } {
  const axes = axesOf(isDown)
  const [a, b] = [along(axes, layerOf[box] ?? 0), across(axes, rowOf[box] ?? 0)]
  return isDown ? { x: b, y: a } : { x: a, y: b }
}

export function sizeOf({ layers, rows, isDown }: Drawing): { readonly width: number; readonly height: number } {
  const axes = axesOf(isDown)
  const length = 2 * MARGIN + (layers - 1) * axes.layer + axes.box
  const breadth = 2 * MARGIN + Math.max(0, rows - 1) * axes.row + axes.boxAcross
  return isDown ? { width: breadth, height: length } : { width: length, height: breadth }
}

/** A smooth path from the end of a box, along its bends, to the beginning of another. */
export function pathOf({ isDown }: Pick<Drawing, 'isDown'>, line: Line, firstLayer: number): string {
  const axes = axesOf(isDown)
  const middle = (row: number) => (across(axes, row) + axes.boxAcross / 2).toFixed(1)
  const point = (a: number, b: string) => (isDown ? `${b} ${a}` : `${a} ${b}`)
  const straight = isDown ? 'V' : 'H'
  const gap = axes.layer - axes.box
  let path = `M${point(along(axes, firstLayer) + axes.box, middle(line.rows[0]!))}`
  for (let step = 1; step < line.rows.length; step++) {
    const end = along(axes, firstLayer + step)
    const bend = end - gap / 2
    const [from, to] = [middle(line.rows[step - 1]!), middle(line.rows[step]!)]
    path += from === to ? `${straight}${end}` : `C${point(bend, from)} ${point(bend, to)} ${point(end, to)}`
    if (step < line.rows.length - 1) path += `${straight}${end + axes.box}`
  }
  return path
}
