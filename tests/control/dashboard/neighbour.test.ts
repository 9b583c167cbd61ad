/** Goal: arrow keys lead along the edges, and up and down within a layer, to what is nearest. */
import { expect, test } from 'bun:test'
import { layOut } from '../../../control/dashboard/graph-view/layout.ts'
import { neighbour } from '../../../control/dashboard/graph-view/neighbour.ts'

/** 0 leads to 1, 2 and 3, which lead to 4. */
const EDGES = [
  [0, 1],
  [0, 2],
  [0, 3],
  [1, 4],
  [2, 4],
  [3, 4],
] as const

const layout = layOut(5, EDGES)
const go = (key: string, from: number) => neighbour(key, from, layout, EDGES)

test('right and left follow the edges', () => {
  expect(go('ArrowRight', 1)).toBe(4)
  expect(go('ArrowLeft', 3)).toBe(0)
  const middle = [1, 2, 3].toSorted((a, b) => layout.rowOf[a]! - layout.rowOf[b]!)[1]!
  expect([go('ArrowRight', 0), go('ArrowLeft', 4)]).toEqual([middle, middle])
  expect([go('ArrowLeft', 0), go('ArrowRight', 4), go('a', 0)]).toEqual([undefined, undefined, undefined])
})

test('up and down stay in the layer', () => {
  const column = [1, 2, 3].toSorted((a, b) => layout.rowOf[a]! - layout.rowOf[b]!)
  expect([go('ArrowDown', column[0]!), go('ArrowDown', column[1]!), go('ArrowDown', column[2]!)]).toEqual([
    column[1]!,
    column[2]!,
    undefined,
  ])
  expect(go('ArrowUp', column[2]!)).toBe(column[1]!)
})
