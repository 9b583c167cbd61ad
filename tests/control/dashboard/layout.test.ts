/** Goal: a drawing that can be read, of any graph. Method: random graphs without cycles. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Layout, layOut } from '../../../control/dashboard/graph-view/layout.ts'

const graph = fc.integer({ min: 1, max: 40 }).chain((count) =>
  fc
    .uniqueArray(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), {
      selector: ([a, b]) => `${a} ${b}`,
      maxLength: 120,
    })
    .map((pairs) => ({ count, edges: pairs.filter(([from, to]) => from < to) })),
)

const check = (rule: (layout: Layout, edges: readonly (readonly [number, number])[], count: number) => void) =>
  fc.assert(fc.property(graph, ({ count, edges }) => rule(layOut(count, edges), edges, count)))

test('every edge goes to the right', () => {
  check(({ layerOf }, edges) => {
    for (const [from, to] of edges) expect(layerOf[from]!).toBeLessThan(layerOf[to]!)
  })
})

test('boxes of a layer are a row apart, and nothing lies above the first row or below the last', () => {
  check(({ layerOf, rowOf, layers, rows, lines }, _, count) => {
    for (let layer = 0; layer < layers; layer++) {
      const inLayer = rowOf.filter((_, box) => layerOf[box] === layer).sort((a, b) => a - b)
      expect(inLayer.length).toBeGreaterThan(0)
      for (let at = 1; at < inLayer.length; at++) expect(inLayer[at]! - inLayer[at - 1]!).toBeGreaterThan(0.999)
    }
    expect(rowOf.length).toBe(count)
    for (const row of [...rowOf, ...lines.flatMap((line) => line.rows)]) {
      expect(row).toBeGreaterThanOrEqual(0)
      expect(row).toBeLessThanOrEqual(rows - 1 + 1e-9)
    }
  })
})

test('a line has a point in each layer and ends at its boxes', () => {
  check(({ lines, layerOf, rowOf }) => {
    for (const { from, to, rows } of lines) {
      expect(rows.length).toBe(layerOf[to]! - layerOf[from]! + 1)
      expect([rows[0], rows.at(-1)]).toEqual([rowOf[from], rowOf[to]])
    }
  })
})

test('lines pass between boxes, not through them', () => {
  check(({ lines, layerOf, rowOf }) => {
    for (const { from, rows } of lines) {
      for (const [step, row] of rows.slice(1, -1).entries()) {
        const layer = layerOf[from]! + step + 1
        const boxes = rowOf.filter((_, box) => layerOf[box] === layer)
        expect(boxes.every((box) => Math.abs(box - row) > 0.6)).toBe(true)
      }
    }
  })
})

test('what is drawn reaches exactly what the edges reach', () => {
  const reach = (count: number, edges: readonly (readonly [number, number])[]) => {
    const reached = Array.from({ length: count }, () => new Set<number>())
    for (let box = count - 1; box >= 0; box--) {
      for (const [from, to] of edges) if (from === box) for (const one of [to, ...reached[to]!]) reached[box]!.add(one)
    }
    return reached
  }
  check(({ lines }, edges, count) => {
    const drawn = lines.map(({ from, to }) => [from, to] as const)
    expect(drawn.length).toBeLessThanOrEqual(edges.length)
    expect(reach(count, drawn)).toEqual(reach(count, edges))
  })
})

test('the same graph is drawn the same, and siblings stand in their order', () => {
  const edges = [1, 2, 3, 4].flatMap((box): [number, number][] => [
    [0, box],
    [box, 5],
  ])
  const layout = layOut(6, edges)
  expect(layOut(6, edges)).toEqual(layout)
  const { rowOf } = layout
  expect([1, 2, 3, 4].map((box) => rowOf[box]!)).toEqual([0, 1, 2, 3])
  expect([rowOf[0], rowOf[5]]).toEqual([1.5, 1.5])
})

test('a chain is a straight line, and nothing is an empty drawing', () => {
  const { rowOf, layerOf } = layOut(4, [
    [0, 1],
    [1, 2],
    [2, 3],
  ])
  expect([...rowOf]).toEqual([0, 0, 0, 0])
  expect([...layerOf]).toEqual([0, 1, 2, 3])
  expect(layOut(0, [])).toEqual({ layerOf: [], rowOf: [], lines: [], layers: 0, rows: 0 })
})

test('a drawing is about as tall as its tallest layer, without empty bands', () => {
  const edges = Array.from({ length: 480 }, (_, index): [number, number][] => {
    const box = index + 20
    return [
      [box - 20, box],
      [box - 11 - (box % 7), box],
    ]
  }).flat()
  const { layerOf, layers, rows } = layOut(500, edges)
  const sizes = Array.from({ length: layers }, (_, layer) => layerOf.filter((one) => one === layer).length)
  expect(rows).toBeLessThan(1.5 * Math.max(...sizes))
})
