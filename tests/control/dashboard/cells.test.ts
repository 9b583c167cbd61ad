/** Goal: each task has one cell of the heat map, that one can find again and reach by keys. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cellAfterKey, cellAt, cellLeft, cellTop, gridOf, pathsOf } from '../../../control/dashboard/heat-map/cells.ts'

const sizes = fc.record({ count: fc.integer({ min: 1, max: 10_000 }), width: fc.integer({ min: 1, max: 3_000 }) })

test('the cell at the place of a cell is that cell', () => {
  fc.assert(
    fc.property(sizes, fc.nat(), ({ count, width }, any) => {
      const grid = gridOf(count, width)
      const cell = any % count
      expect(grid.rows * grid.columns).toBeGreaterThanOrEqual(count)
      expect(cellAt(grid, count, cellLeft(grid, cell) + 1, cellTop(grid, cell) + 1)).toBe(cell)
      expect(cellTop(grid, cell)).toBeLessThan(grid.rows * grid.size)
    }),
  )
})

test('beside the cells there is none', () => {
  const grid = gridOf(5, 40)
  expect([grid.columns, grid.rows]).toEqual([2, 3])
  expect(cellAt(grid, 5, -1, 0)).toBeUndefined()
  expect(cellAt(grid, 5, 2 * grid.size, 0)).toBeUndefined()
  expect(cellAt(grid, 5, grid.size, 2 * grid.size)).toBeUndefined()
})

test('keys lead to the neighbours, and not beyond the edges', () => {
  const grid = gridOf(5, 40)
  const from = (cell: number) => (key: string) => cellAfterKey(key, cell, grid, 5)
  expect(['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'Home', 'End'].map(from(2))).toEqual([3, 1, 4, 0, 0, 4])
  expect(['ArrowRight', 'ArrowDown', 'x'].map(from(4))).toEqual([undefined, undefined, undefined])
})

test('a look has the cells of its tasks, and a sign in each', () => {
  const grid = gridOf(3, 100)
  const { cells, signs } = pathsOf(grid, ['success', 'failed', 'failed'], 'failed')
  const starts = (path: string) => [...path.matchAll(/M(\d+) (\d+)/g)].map(([, x, y]) => [Number(x), Number(y)])
  expect(starts(cells)).toEqual([
    [grid.size, 0],
    [2 * grid.size, 0],
  ])
  expect(starts(signs)).toEqual(starts(cells))
  expect(pathsOf(grid, ['success'], 'success').signs).toBe('')
})
