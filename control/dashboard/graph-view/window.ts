/** Which boxes a window shows. Pure. */
import { BOX_HEIGHT, BOX_WIDTH, heightOf, leftOf, topOf, widthOf } from './geometry.ts'
import type { Layout } from './layout.ts'

/** A part of the drawing, in its own pixels. */
export interface Part {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** What a window of `width` and `height` shows, with `box` as near to its middle as the ends of the drawing allow. */
export function partAround(layout: Layout, box: number, width: number, height: number): Part {
  const begin = (middle: number, size: number, whole: number) => Math.max(0, Math.min(middle - size / 2, whole - size))
  const x = leftOf(layout.layerOf[box] ?? 0) + BOX_WIDTH / 2
  const y = topOf(layout.rowOf[box] ?? 0) + BOX_HEIGHT / 2
  return { left: begin(x, width, widthOf(layout)), top: begin(y, height, heightOf(layout)), width, height }
}

/** Whether any of a box is in a part of the drawing. */
export function isInPart({ layerOf, rowOf }: Layout, box: number, { left, top, width, height }: Part): boolean {
  const [x, y] = [leftOf(layerOf[box]!), topOf(rowOf[box]!)]
  return x + BOX_WIDTH > left && x < left + width && y + BOX_HEIGHT > top && y < top + height
}
