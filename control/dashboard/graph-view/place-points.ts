/**
 * Gives the ordered points of each layer their height.
 *
 * Every layer starts packed, its middle at 0. Sweeps forth and back then move each layer to where its neighbours are: each
 * point wants the mean of its neighbours, and the layer takes the heights nearest to that which keep order and gaps. Those
 * are found exactly, in one pass: points that would overlap are a block, which moves as one (pool adjacent violators).
 *
 * Since nothing moves away from its neighbours, the drawing is hardly taller than its tallest layer. Aligning chains into
 * straight lines (Brandes and Köpf), which was here before, made it up to six times as tall, with empty bands.
 */

export interface Layered {
  readonly layers: readonly (readonly number[])[]
  readonly up: readonly (readonly number[])[]
  readonly down: readonly (readonly number[])[]
  /** Whether a point is a bend of a long edge rather than a box. */
  readonly isBend: readonly boolean[]
}

/** Sweeps over all layers, forth and back in turn. Further ones do not make lines shorter. */
const SWEEPS = 8

/** How much more the straightness of a line counts between two bends, and between a bend and a box, than between boxes. */
const BEND_WEIGHT = 8
const HALF_BEND_WEIGHT = 2

/** How much it counts where a point is. It decides only where a point has no neighbours. */
const REST_WEIGHT = 0.01

/** Distance of the middles of two neighbours, in rows: boxes need a row each, lines that pass need less. */
const gap = (isBendA: boolean, isBendB: boolean): number => (isBendA && isBendB ? 0.3 : isBendA || isBendB ? 0.65 : 1)

/** Height of the middle of each point, in rows; the least is 0. */
export function placePoints({ layers, up, down, isBend }: Layered): Float64Array {
  const heights = new Float64Array(isBend.length)
  for (const layer of layers) pack(layer, isBend, heights)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const order = sweep % 2 === 0 ? layers : layers.toReversed()
    for (const layer of order) settle(layer, up, down, isBend, heights)
  }
  const least = heights.reduce(
    (low, height) => Math.min(low, height),
    isBend.length === 0 ? 0 : Number.POSITIVE_INFINITY,
  )
  return heights.map((height) => height - least)
}

function pack(layer: readonly number[], isBend: readonly boolean[], heights: Float64Array): void {
  let height = 0
  for (const [at, point] of layer.entries()) {
    if (at > 0) height += gap(isBend[layer[at - 1]!]!, isBend[point]!)
    heights[point] = height
  }
  for (const point of layer) heights[point]! -= height / 2
}

/** Points whose gaps are all as small as they may be. `wanted` is the mean of what they want of their first point. */
interface Block {
  first: number
  wanted: number
  weight: number
}

/** Moves the points of a layer to their neighbours. */
function settle(
  layer: readonly number[],
  up: Layered['up'],
  down: Layered['down'],
  isBend: readonly boolean[],
  heights: Float64Array,
): void {
  const blocks: Block[] = []
  const offsets = new Float64Array(layer.length)
  for (const [at, point] of layer.entries()) {
    if (at > 0) offsets[at] = offsets[at - 1]! + gap(isBend[layer[at - 1]!]!, isBend[point]!)
    let [sum, weight] = [heights[point]! * REST_WEIGHT, REST_WEIGHT]
    for (const neighbours of [up, down]) {
      for (const other of neighbours[point]!) {
        const straightness =
          isBend[point] && isBend[other] ? BEND_WEIGHT : isBend[point] || isBend[other] ? HALF_BEND_WEIGHT : 1
        sum += heights[other]! * straightness
        weight += straightness
      }
    }
    let block: Block = { first: at, wanted: sum / weight - offsets[at]!, weight }
    for (let above = blocks.at(-1); above !== undefined && above.wanted > block.wanted; above = blocks.at(-1)) {
      blocks.pop()
      const both = above.weight + block.weight
      const wanted = (above.wanted * above.weight + block.wanted * block.weight) / both
      block = { first: above.first, wanted, weight: both }
    }
    blocks.push(block)
  }
  for (const [index, { first, wanted }] of blocks.entries()) {
    const end = blocks[index + 1]?.first ?? layer.length
    for (let at = first; at < end; at++) heights[layer[at]!] = wanted + offsets[at]!
  }
}
