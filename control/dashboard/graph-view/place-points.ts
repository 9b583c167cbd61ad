/**
 * Gives the ordered points of each layer their height.
 *
 * Every layer starts packed, its middle at 0. Sweeps forth and back then move each layer to where its neighbours are:
 * the aim of each point is the mean of its neighbours. The layer takes the heights nearest to the aims that keep order
 * and gaps. One pass finds them exactly: points that would overlap are a block, which moves as one (pool adjacent
 * violators).
 *
 * Since nothing moves away from its neighbours, the drawing is hardly taller than its tallest layer. Aligning chains
 * into straight lines (Brandes and Köpf), which was here before, made it up to six times as tall, with empty bands.
 */

export interface Layered {
  readonly layers: readonly (readonly number[])[]
  readonly up: readonly (readonly number[])[]
  readonly down: readonly (readonly number[])[]
  /** Whether a point is a bend of a long edge rather than a box. */
  readonly isBend: readonly boolean[]
  /** Rows that each box takes. One where there is none. */
  readonly breadths: readonly number[]
}

/** Sweeps over all layers, forth and back in turn. Further ones make lines less than 1 % shorter. */
const SWEEPS = 4

/** Weights of straight lines between two bends, and between a bend and a box, relative to lines between boxes. */
const BEND_WEIGHT = 8
const HALF_BEND_WEIGHT = 2

/** Weight of the present height of a point. It matters only for points without neighbours. */
const REST_WEIGHT = 0.01

type Sizes = Pick<Layered, 'isBend' | 'breadths'>

/** Half of what a point takes beyond a row. */
const excess = ({ breadths }: Sizes, point: number): number => ((breadths[point] ?? 1) - 1) / 2

/** Distance of the middles of two neighbours, in rows: boxes need what they take, lines that pass need less than a row. */
function gap(sizes: Sizes, a: number, b: number): number {
  const bends = Number(sizes.isBend[a]) + Number(sizes.isBend[b])
  return (bends === 2 ? 0.3 : bends === 1 ? 0.65 : 1) + excess(sizes, a) + excess(sizes, b)
}

/** Height of the middle of each point, in rows. A box of one row at the top has 0. `rows`: those of the whole drawing. */
export function placePoints(layered: Layered): { readonly heights: Float64Array; readonly rows: number } {
  const heights = new Float64Array(layered.isBend.length)
  const lines = linesOf(layered)
  const rows = layered.layers.map((layer) => packed(layer, layered, heights))
  const back = rows.toReversed()
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const row of sweep % 2 === 0 ? rows : back) settle(row, lines, heights)
  }
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const [point, height] of heights.entries()) {
    least = Math.min(least, height - excess(layered, point))
    most = Math.max(most, height + excess(layered, point))
  }
  return { heights: heights.map((height) => height - least), rows: heights.length === 0 ? 0 : most - least + 1 }
}

/** The lines at each point, as one list: those of point `p` are from `first[p]` to before `first[p + 1]`. */
interface Lines {
  readonly first: Int32Array
  readonly other: Int32Array
  readonly weight: Float64Array
}

function linesOf({ up, down, isBend }: Layered): Lines {
  const count = isBend.length
  const first = new Int32Array(count + 1)
  for (let point = 0; point < count; point++) {
    first[point + 1] = first[point]! + up[point]!.length + down[point]!.length
  }
  const other = new Int32Array(first[count]!)
  const weight = new Float64Array(first[count]!)
  for (let point = 0, at = 0; point < count; point++) {
    for (const neighbours of [up[point]!, down[point]!]) {
      for (const neighbour of neighbours) {
        const bends = Number(isBend[point]) + Number(isBend[neighbour])
        other[at] = neighbour
        weight[at++] = bends === 2 ? BEND_WEIGHT : bends === 1 ? HALF_BEND_WEIGHT : 1
      }
    }
  }
  return { first, other, weight }
}

/** The points of a layer, and how far below the first of them each is at least. */
interface Row {
  readonly points: readonly number[]
  readonly offsets: Float64Array
}

/** Packs a layer around height 0. */
function packed(points: readonly number[], sizes: Sizes, heights: Float64Array): Row {
  const offsets = new Float64Array(points.length)
  for (let at = 1; at < points.length; at++) {
    offsets[at] = offsets[at - 1]! + gap(sizes, points[at - 1]!, points[at]!)
  }
  const half = (offsets.at(-1) ?? 0) / 2
  for (let at = 0; at < points.length; at++) heights[points[at]!] = offsets[at]! - half
  return { points, offsets }
}

/**
 * Moves the points of a layer to their neighbours. Points that would overlap are a block, whose gaps are all as small
 * as they may be. Of each block: its first place in the layer, what its points want its first point to be, and their
 * weight.
 */
function settle({ points, offsets }: Row, { first, other, weight }: Lines, heights: Float64Array): void {
  const begins = new Int32Array(points.length)
  const wanted = new Float64Array(points.length)
  const weights = new Float64Array(points.length)
  let blocks = 0
  for (let at = 0; at < points.length; at++) {
    const point = points[at]!
    let total = REST_WEIGHT
    let sum = heights[point]! * REST_WEIGHT
    for (let line = first[point]!; line < first[point + 1]!; line++) {
      total += weight[line]!
      sum += heights[other[line]!]! * weight[line]!
    }
    let begin = at
    let want = sum / total - offsets[at]!
    while (blocks > 0 && wanted[blocks - 1]! > want) {
      blocks--
      const both = weights[blocks]! + total
      want = (wanted[blocks]! * weights[blocks]! + want * total) / both
      total = both
      begin = begins[blocks]!
    }
    begins[blocks] = begin
    wanted[blocks] = want
    weights[blocks++] = total
  }
  for (let block = 0; block < blocks; block++) {
    const end = block + 1 < blocks ? begins[block + 1]! : points.length
    for (let at = begins[block]!; at < end; at++) heights[points[at]!] = wanted[block]! + offsets[at]!
  }
}
