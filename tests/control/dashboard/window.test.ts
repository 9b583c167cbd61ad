/** Goal: the first frame of a drawing has what a window shows, wherever it looks. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Box } from '../../../control/dashboard/graph-view/boxes.ts'
import { draw } from '../../../control/dashboard/graph-view/geometry.ts'
import { isInPart, partAround, partWith } from '../../../control/dashboard/graph-view/window.ts'

/** A chain of `columns` boxes, each with `rows` others beside it. */
const grid = (columns: number, rows: number, isDown = false) => {
  const count = columns * rows
  const edges = Array.from({ length: count - rows }, (_, box) => [box, box + rows] as const)
  const boxes = Array.from({ length: count }, (_, box) => ({ key: `${box}`, label: `${box}`, members: [box] }))
  return draw({ boxes, drawn: edges }, isDown)
}

test('the part is inside the drawing, or begins at its corner, and shows the box that it is around', () => {
  const size = fc.integer({ min: 1, max: 12 })
  const length = fc.integer({ min: 200, max: 3_000 })
  fc.assert(
    fc.property(size, size, length, length, fc.nat(), fc.boolean(), (columns, rows, width, height, at, isDown) => {
      const layout = grid(columns, rows, isDown)
      const whole = layout.size
      const box = at % (columns * rows)
      for (const partOf of [partAround, partWith]) {
        const part = partOf(layout, box, width, height)
        expect(part.left).toBeGreaterThanOrEqual(0)
        expect(part.top).toBeGreaterThanOrEqual(0)
        expect(part.left + width).toBeLessThanOrEqual(Math.max(width, whole.width))
        expect(part.top + height).toBeLessThanOrEqual(Math.max(height, whole.height))
        expect(isInPart(layout, box, part)).toBe(true)
      }
    }),
  )
})

test('a box near the beginning leaves the window there, a far one moves it no further than it must', () => {
  const layout = grid(9, 1)
  const [width, height] = [600, 200]
  expect(partWith(layout, 1, width, height).left).toBe(0)
  const far = partWith(layout, 5, width, height)
  const end = layout.corners[5]!.x + 176
  expect(far.left + width).toBeGreaterThanOrEqual(end)
  expect(far.left + width).toBeLessThan(end + 30)
})

test('a box is in a part as soon as an edge of it is, and a part without the box has nothing of it', () => {
  const layout = grid(3, 3)
  const { x: left, y: top } = layout.corners[4]!
  const inside = (x: number, y: number) => isInPart(layout, 4, { left: x, top: y, width: 10, height: 10 })
  expect(inside(left - 9, top - 9)).toBe(true)
  expect(inside(left - 10, top)).toBe(false)
  expect(inside(left, top - 10)).toBe(false)
  expect(inside(left + 175, top + 43)).toBe(true)
  expect(inside(left + 176, top)).toBe(false)
  expect(inside(left, top + 44)).toBe(false)
})

test('a drawing from top to bottom is one from left to right with its axes exchanged', () => {
  const [right, down] = [grid(3, 2), grid(3, 2, true)]
  expect(right.size.width).toBe(20 + 2 * 232 + 176 + 20)
  expect(down.size).toEqual({ width: 20 + 196 + 176 + 20, height: 20 + 2 * 100 + 44 + 20 })
  expect(down.corners[5]).toEqual({ x: down.corners[4]!.x + 196, y: 220 })
})

test('lines bend between layers, and pass straight beside boxes', () => {
  const boxes = [0, 1, 2, 3].map((box) => ({ key: `${box}`, label: `${box}`, members: [box] }))
  const drawn = [
    [0, 1],
    [1, 2],
    [3, 2],
  ] as const
  const [right, down] = [draw({ boxes, drawn }, false), draw({ boxes, drawn }, true)]
  const pathOf = ({ lines }: typeof right) => lines.find(({ from }) => from === 3)!.path
  expect(pathOf(right)).toMatch(/^M196 ([\d.]+)C224 \1 224 ([\d.]+) 252 \2H428C456 \2 456 ([\d.]+) 484 \3$/)
  expect(pathOf(down)).toMatch(/^M([\d.]+) 64C\1 92 ([\d.]+) 92 \2 120V164C\2 192 ([\d.]+) 192 \3 220$/)
})

test('an open group is a frame: its boxes are inside, nothing else is, and lines outside end at it', () => {
  const size = fc.integer({ min: 1, max: 6 })
  fc.assert(
    fc.property(size, size, size, fc.boolean(), (columns, rows, others, isDown) => {
      // Box 0 leads to the frame 1, that to 2; `others` stand beside the frame.
      const plain = (box: number) => ({ key: `${box}`, label: `${box}`, members: [box] })
      const inside = Array.from({ length: columns * rows }, (_, at) => ({ ...plain(3 + others + at), frame: 1 }))
      const boxes: Box[] = [...Array.from({ length: 3 + others }, (_, box) => plain(box)), ...inside]
      const beside = Array.from({ length: others }, (_, at) => [0, 3 + at] as const)
      const within = inside.slice(rows).map((_, at) => [3 + others + at, 3 + others + at + rows] as const)
      const drawing = draw({ boxes, drawn: [[0, 1], [1, 2], ...beside, ...within] }, isDown)
      const area = (box: number) => ({ ...drawing.corners[box]!, ...drawing.sizes[box]! })
      const frame = area(1)
      const overlaps = (box: number) => {
        const { x, y, width, height } = area(box)
        return x < frame.x + frame.width && x + width > frame.x && y < frame.y + frame.height && y + height > frame.y
      }
      for (let box = 0; box < boxes.length; box++) {
        const { x, y, width, height } = area(box)
        expect(x + width).toBeLessThanOrEqual(drawing.size.width)
        expect(y + height).toBeLessThanOrEqual(drawing.size.height)
        if (box !== 1) expect(overlaps(box)).toBe(boxes[box]!.frame === 1)
        if (boxes[box]!.frame !== 1) continue
        expect(x).toBeGreaterThan(frame.x)
        expect(y).toBeGreaterThanOrEqual(frame.y + 44) // below the head
        expect(x + width).toBeLessThan(frame.x + frame.width)
        expect(y + height).toBeLessThan(frame.y + frame.height)
      }
      const out = drawing.lines.find(({ from, to }) => from === 1 && to === 2)!
      const end = isDown ? frame.y + frame.height : frame.x + frame.width
      const [, x, y] = /^M([\d.]+) ([\d.]+)/.exec(out.path)!
      expect(Number(isDown ? y : x)).toBe(end)
    }),
  )
})
