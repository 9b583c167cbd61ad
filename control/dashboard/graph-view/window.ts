/** Which boxes a window shows. Pure. */
import type { Drawing } from './geometry.ts'

/** A part of the drawing, in its own pixels. */
export interface Part {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** What a window of `width` and `height` shows, with `box` as near to its middle as the ends of the drawing allow. */
export const partAround: PartOf = (drawing, box, width, height) =>
  placed(drawing, box, width, height, (begin, boxSize, size) => begin + boxSize / 2 - size / 2)

/** What such a window shows of the beginning of the drawing, and only so much further that it has the whole `box`. */
export const partWith: PartOf = (drawing, box, width, height) =>
  placed(drawing, box, width, height, (begin, boxSize, size) => begin + boxSize + SPACE - size)

type PartOf = (drawing: Drawing, box: number, width: number, height: number) => Part

/** Beside a box at an edge of the window, so that one sees that it ends. */
const SPACE = 20

/** `wanted`: where the window begins, from the begin and the size of the box, and its own size. */
function placed(
  drawing: Drawing,
  box: number,
  width: number,
  height: number,
  wanted: (begin: number, boxSize: number, size: number) => number,
): Part {
  const within = (begin: number, size: number, whole: number) => Math.max(0, Math.min(begin, whole - size))
  const { x, y } = drawing.corners[box]!
  const size = drawing.sizes[box]!
  const whole = drawing.size
  const left = wanted(x, size.width, width)
  const top = wanted(y, size.height, height)
  return {
    ...{ left: within(left, width, whole.width), top: within(top, height, whole.height) },
    ...{ width, height },
  }
}

/** Whether any of a box is in a part of the drawing. */
export function isInPart(drawing: Drawing, box: number, { left, top, width, height }: Part): boolean {
  const { x, y } = drawing.corners[box]!
  const size = drawing.sizes[box]!
  return x + size.width > left && x < left + width && y + size.height > top && y < top + height
}
