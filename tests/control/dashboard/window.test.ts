/** Goal: the first frame of a drawing has what a window shows, wherever it looks. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cornerOf, pathOf, sizeOf } from '../../../control/dashboard/graph-view/geometry.ts'
import { layOut } from '../../../control/dashboard/graph-view/layout.ts'
import { isInPart, partAround, partWith } from '../../../control/dashboard/graph-view/window.ts'

/** A chain of `columns` boxes, each with `rows` others beside it. */
const grid = (columns: number, rows: number, isDown = false) => {
  const count = columns * rows
  const edges = Array.from({ length: count - rows }, (_, box) => [box, box + rows] as const)
  return { ...layOut(count, edges), isDown }
}

test('the part is inside the drawing, or begins at its corner, and shows the box that it is around', () => {
  const size = fc.integer({ min: 1, max: 12 })
  const length = fc.integer({ min: 200, max: 3_000 })
  fc.assert(
    fc.property(size, size, length, length, fc.nat(), fc.boolean(), (columns, rows, width, height, at, isDown) => {
      const layout = grid(columns, rows, isDown)
      const whole = sizeOf(layout)
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
  const end = cornerOf(layout, 5).x + 176
  expect(far.left + width).toBeGreaterThanOrEqual(end)
  expect(far.left + width).toBeLessThan(end + 30)
})

test('a box is in a part as soon as an edge of it is, and a part without the box has nothing of it', () => {
  const layout = grid(3, 3)
  const { x: left, y: top } = cornerOf(layout, 4)
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
  expect(sizeOf(right).width).toBe(20 + 2 * 232 + 176 + 20)
  expect(sizeOf(down)).toEqual({ width: 20 + 196 + 176 + 20, height: 20 + 2 * 100 + 44 + 20 })
  expect(cornerOf(down, 5)).toEqual({ x: 20 + 196 * down.rowOf[5]!, y: 220 })
  const line = { from: 0, to: 4, rows: [0, 1, 1] }
  expect(pathOf(right, line, 0)).toBe('M196 42.0C224 42.0 224 100.0 252 100.0H428H484')
  expect(pathOf(down, line, 0)).toBe('M108.0 64C108.0 92 304.0 92 304.0 120V164V220')
})
