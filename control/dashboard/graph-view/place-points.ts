/**
 * Gives the ordered points of each layer their height (Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment").
 *
 * Points are aligned with the middle one of their neighbours, into straight lines; four times, from each corner. Each point
 * takes the mean of the middle two of its four heights. Long edges keep straight: their inner parts win over others.
 */

export interface Layered {
  readonly layers: readonly (readonly number[])[]
  readonly up: readonly (readonly number[])[]
  readonly down: readonly (readonly number[])[]
  /** Whether a point is a bend of a long edge rather than a box. */
  readonly isBend: readonly boolean[]
}

/** Distance of the middles of two neighbours, in rows: boxes need a row each, lines that pass need less. */
const gap = (isBendA: boolean, isBendB: boolean): number => (isBendA && isBendB ? 0.3 : isBendA || isBendB ? 0.65 : 1)

/** Height of the middle of each point, in rows; the least is 0. */
export function placePoints({ layers, up, down, isBend }: Layered): Float64Array {
  const count = isBend.length
  const runs: Float64Array[] = []
  for (const isUpward of [false, true]) {
    for (const isMirrored of [false, true]) {
      const turned = isUpward ? layers.toReversed() : [...layers]
      const ordered = turned.map((layer) => (isMirrored ? layer.toReversed() : [...layer]))
      const heights = aligned(ordered, isUpward ? down : up, isBend)
      runs.push(isMirrored ? heights.map((height) => -height) : heights)
    }
  }
  moveTogether(runs)
  const middle = Float64Array.from({ length: count }, (_, point) => {
    const heights = runs.map((run) => run[point]!).sort((a, b) => a - b)
    return (heights[1]! + heights[2]!) / 2
  })
  const least = middle.reduce((low, height) => Math.min(low, height), count === 0 ? 0 : Number.POSITIVE_INFINITY)
  return middle.map((height) => height - least)
}

/** Moves the runs so that their edges meet those of the narrowest: the upper ones for even runs, the lower for odd. */
function moveTogether(runs: readonly Float64Array[]): void {
  const ends = runs.map((run) => ({
    least: run.reduce((low, height) => Math.min(low, height), Number.POSITIVE_INFINITY),
    most: run.reduce((high, height) => Math.max(high, height), Number.NEGATIVE_INFINITY),
  }))
  const narrowest = ends.reduce((best, end) => (end.most - end.least < best.most - best.least ? end : best))
  for (const [index, run] of runs.entries()) {
    const by = index % 2 === 0 ? narrowest.least - ends[index]!.least : narrowest.most - ends[index]!.most
    for (let point = 0; point < run.length; point++) run[point]! += by
  }
}

/** One of the four runs: lines of points with the same height, as close together as they may be. */
function aligned(
  layers: readonly (readonly number[])[],
  neighbours: readonly (readonly number[])[],
  isBend: readonly boolean[],
): Float64Array {
  const position = new Int32Array(isBend.length)
  for (const layer of layers) for (const [at, point] of layer.entries()) position[point] = at
  const root = Int32Array.from(isBend, (_, point) => point)
  const next = Int32Array.from(root)
  for (const layer of layers.slice(1)) {
    const walls = innerParts(layer, neighbours, position, isBend)
    let lowest = -1
    for (const point of layer) {
      const around = neighbours[point]!.toSorted((a, b) => position[a]! - position[b]!)
      const middle = (around.length - 1) / 2
      for (let at = Math.floor(middle); at <= Math.ceil(middle) && around.length > 0; at++) {
        const other = around[at]!
        if (next[point] !== point || lowest >= position[other]! || crosses(walls, point, other, position)) continue
        next[other] = point
        root[point] = root[other]!
        next[point] = root[point]!
        lowest = position[other]!
      }
    }
  }
  return compacted(layers, root, isBend)
}

interface InnerPart {
  readonly from: number
  readonly to: number
}

/** Edges between two bends, as positions in the layer before and in this one. */
function innerParts(
  layer: readonly number[],
  neighbours: readonly (readonly number[])[],
  position: Int32Array,
  isBend: readonly boolean[],
): InnerPart[] {
  return layer.flatMap((point, to) =>
    isBend[point]
      ? neighbours[point]!.filter((other) => isBend[other]).map((other) => ({ from: position[other]!, to }))
      : [],
  )
}

/** Whether the edge crosses an inner part. */
const crosses = (walls: readonly InnerPart[], point: number, other: number, position: Int32Array): boolean => {
  const [from, to] = [position[other]!, position[point]!]
  return walls.some((wall) => (wall.from - from) * (wall.to - to) < 0)
}

/** Heights of lines of points: the longest chain of gaps above each, then as near to what is below as the gaps allow. */
function compacted(layers: readonly (readonly number[])[], root: Int32Array, isBend: readonly boolean[]): Float64Array {
  const count = root.length
  const above: { line: number; gap: number }[][] = Array.from({ length: count }, () => [])
  const below: { line: number; gap: number }[][] = Array.from({ length: count }, () => [])
  const waitsFor = new Int32Array(count)
  for (const layer of layers) {
    for (let at = 1; at < layer.length; at++) {
      const [upper, lower] = [layer[at - 1]!, layer[at]!]
      const needed = gap(isBend[upper]!, isBend[lower]!)
      above[root[lower]!]!.push({ line: root[upper]!, gap: needed })
      below[root[upper]!]!.push({ line: root[lower]!, gap: needed })
      waitsFor[root[lower]!]!++
    }
  }
  const height = new Float64Array(count)
  const order: number[] = []
  for (let line = 0; line < count; line++) if (root[line] === line && waitsFor[line] === 0) order.push(line)
  for (let at = 0; at < order.length; at++) {
    const line = order[at]!
    for (const { line: upper, gap: needed } of above[line]!) {
      height[line] = Math.max(height[line]!, height[upper]! + needed)
    }
    for (const { line: lower } of below[line]!) if (--waitsFor[lower]! === 0) order.push(lower)
  }
  for (const line of order.toReversed()) {
    const room = below[line]!.reduce(
      (least, one) => Math.min(least, height[one.line]! - one.gap),
      Number.POSITIVE_INFINITY,
    )
    if (room !== Number.POSITIVE_INFINITY && above[line]!.length > 0) height[line] = Math.max(height[line]!, room)
  }
  return Float64Array.from(root, (line) => height[line]!)
}
