/**
 * Lays a graph out from left to right. Pure.
 *
 * 1. The layer of a box is the one after the last layer of its dependencies.
 * 2. Edges that a longer path implies are left out of the drawing, because they make the others harder to follow.
 * 3. An edge over several layers has a bend in each of them. The long edges of a box share their bends until they part.
 * 4. The order within layers avoids crossings (`order-layers.ts`), the heights make lines straight (`place-points.ts`).
 *
 * `docs/dashboard.md` compares it with a layout library.
 */
import { orderLayers } from './order-layers.ts'
import { placePoints } from './place-points.ts'

export interface Layout {
  /** Layer of each box, from 0. */
  readonly layerOf: readonly number[]
  /** Height of the middle of each box in rows, from 0. */
  readonly rowOf: readonly number[]
  readonly lines: readonly Line[]
  readonly layers: number
  readonly rows: number
}

/** A drawn edge: the rows through which it passes, one for each layer from that of `from` to that of `to`. */
export interface Line {
  readonly from: number
  readonly to: number
  readonly rows: readonly number[]
}

/** Lays out boxes 0 to `count` - 1. `edges` must have no cycle. `breadths`: rows that a box takes, one if not given. */
export function layOut(
  count: number,
  edges: readonly (readonly [from: number, to: number])[],
  breadths: readonly number[] = [],
): Layout {
  const layerOf = layersOf(count, edges)
  const drawn = withoutImplied(count, edges, layerOf)
  const { layered, bends } = withBends(count, drawn, layerOf)
  orderLayers(layered.layers, layered.up, layered.down)
  const { heights, rows } = placePoints({ ...layered, breadths })
  const lines = drawn.map(([from, to]): Line => {
    const between = bends.get(from)?.slice(0, layerOf[to]! - layerOf[from]! - 1) ?? []
    return { from, to, rows: [from, ...between, to].map((point) => heights[point]!) }
  })
  return {
    layerOf,
    rowOf: Array.from({ length: count }, (_, box) => heights[box]!),
    lines,
    layers: layered.layers.length,
    rows,
  }
}

function layersOf(count: number, edges: readonly (readonly [number, number])[]): number[] {
  const after: number[][] = Array.from({ length: count }, () => [])
  const waitsFor = new Int32Array(count)
  for (const [from, to] of edges) {
    after[from]!.push(to)
    waitsFor[to]!++
  }
  const layerOf = new Array<number>(count).fill(0)
  const order = [...waitsFor.keys()].filter((box) => waitsFor[box] === 0)
  for (let at = 0; at < order.length; at++) {
    const box = order[at]!
    for (const next of after[box]!) {
      layerOf[next] = Math.max(layerOf[next]!, layerOf[box]! + 1)
      if (--waitsFor[next]! === 0) order.push(next)
    }
  }
  return layerOf
}

/** The edges that no longer path implies. For each box, one bit for every box that is reached from it. */
export function withoutImplied(
  count: number,
  edges: readonly (readonly [number, number])[],
  layerOf: readonly number[],
): readonly (readonly [number, number])[] {
  const words = (count + 31) >>> 5
  const reached = Array.from({ length: count }, () => new Int32Array(words))
  const after: number[][] = Array.from({ length: count }, () => [])
  for (const [from, to] of edges) after[from]!.push(to)
  const kept = new Set<number>()
  const order = Array.from({ length: count }, (_, box) => box).sort((a, b) => layerOf[b]! - layerOf[a]!)
  for (const box of order) {
    const own = reached[box]!
    // The nearest dependents come first, because edges to boxes that they reach are implied.
    for (const next of after[box]!.toSorted((a, b) => layerOf[a]! - layerOf[b]!)) {
      if ((own[next >>> 5]! >>> (next & 31)) & 1) continue
      kept.add(box * count + next)
      const further = reached[next]!
      for (let word = 0; word < words; word++) own[word]! |= further[word]!
      own[next >>> 5]! |= 1 << (next & 31)
    }
  }
  return edges.filter(([from, to]) => kept.delete(from * count + to))
}

/** Adds bends to edges over several layers: one chain for each box that has such edges. */
function withBends(count: number, edges: readonly (readonly [number, number])[], layerOf: readonly number[]) {
  const layers: number[][] = []
  const up: number[][] = Array.from({ length: count }, () => [])
  const down: number[][] = Array.from({ length: count }, () => [])
  const isBend = new Array<boolean>(count).fill(false)
  const put = (point: number, layer: number) => {
    while (layers.length <= layer) layers.push([])
    layers[layer]!.push(point)
  }
  const connect = (from: number, to: number) => {
    down[from]!.push(to)
    up[to]!.push(from)
  }
  for (let box = 0; box < count; box++) put(box, layerOf[box]!)
  const bends = new Map<number, number[]>()
  for (const [from, to] of edges) {
    const needed = layerOf[to]! - layerOf[from]! - 1
    const chain = bends.get(from) ?? []
    while (chain.length < needed) {
      const bend = isBend.push(true) - 1
      up.push([])
      down.push([])
      put(bend, layerOf[from]! + 1 + chain.length)
      connect(chain.at(-1) ?? from, bend)
      chain.push(bend)
    }
    if (needed > 0) bends.set(from, chain)
    connect(needed === 0 ? from : chain[needed - 1]!, to)
  }
  return { layered: { layers, up, down, isBend }, bends }
}
