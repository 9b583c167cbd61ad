/** Which boxes a window shows. Pure. */
import { BOX_HEIGHT, BOX_WIDTH, cornerOf, type Drawing, sizeOf } from './geometry.ts'

/** A part of the drawing, in its own pixels. */
export interface Part {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** What a window of `width` and `height` shows, with `box` as near to its middle as the ends of the drawing allow. */
export const partAround: PartOf = (layout, box, width, height) =>
  placed(layout, box, width, height, (begin, boxSize, size) => begin + boxSize / 2 - size / 2)

/** What such a window shows of the beginning of the drawing, and only so much further that it has the whole `box`. */
export const partWith: PartOf = (layout, box, width, height) =>
  placed(layout, box, width, height, (begin, boxSize, size) => begin + boxSize + SPACE - size)

type PartOf = (layout: Drawing, box: number, width: number, height: number) => Part

/** Beside a box at an edge of the window, so that one sees that it ends. */
const SPACE = 20

/** `wanted`: where the window begins, from the begin and the size of the box, and its own size. */
function placed(
  layout: Drawing,
  box: number,
  width: number,
  height: number,
  wanted: (begin: number, boxSize: number, size: number) => number,
): Part {
  const within = (begin: number, size: number, whole: number) => Math.max(0, Math.min(begin, whole - size))
  const { x, y } = cornerOf(layout, box)
  const whole = sizeOf(layout)
  const left = wanted(x, BOX_WIDTH, width)
  const top = wanted(y, BOX_HEIGHT, height)
  return {
    ...{ left: within(left, width, whole.width), top: within(top, height, whole.height) },
    ...{ width, height },
  }
}

/** Whether any of a box is in a part of the drawing. */
export function isInPart(layout: Drawing, box: number, { left, top, width, height }: Part): boolean {
  const { x, y } = cornerOf(layout, box)
  return x + BOX_WIDTH > left && x < left + width && y + BOX_HEIGHT > top && y < top + height
}
