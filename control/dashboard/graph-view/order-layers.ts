/**
 * Orders the points of each layer so that few edges cross: sweeps forth and back, each sorting a layer by the middle of its
 * neighbours in the layer before. The best order of all sweeps is kept. Ties keep the order of the file, so equal siblings
 * stand as they were written.
 */

/** Sweeps without a better order before it gives up, and sweeps in all. */
const PATIENCE = 4
const MAX_SWEEPS = 24

/** `up[v]`: neighbours of `v` in the layer before; `down[v]`: in the layer after. Changes the order within `layers`. */
export function orderLayers(
  layers: number[][],
  up: readonly (readonly number[])[],
  down: readonly (readonly number[])[],
): void {
  const position = new Float64Array(up.length)
  const note = () => {
    for (const layer of layers) for (const [at, point] of layer.entries()) position[point] = at
  }
  note()
  let best = layers.map((layer) => [...layer])
  let fewest = crossings(layers, down, position)
  for (let sweep = 0, since = 0; sweep < MAX_SWEEPS && since < PATIENCE && fewest > 0; sweep++, since++) {
    const isForth = sweep % 2 === 0
    const order = isForth ? layers : layers.toReversed()
    for (const layer of order.slice(1)) sortByMiddle(layer, isForth ? up : down, position)
    const count = crossings(layers, down, position)
    if (count >= fewest) continue
    fewest = count
    best = layers.map((layer) => [...layer])
    since = 0
  }
  for (const [index, layer] of best.entries()) layers[index]!.splice(0, layer.length, ...layer)
}

function sortByMiddle(layer: number[], neighbours: readonly (readonly number[])[], position: Float64Array): void {
  const middle = new Map(
    layer.map((point) => {
      const around = neighbours[point]!
      const sum = around.reduce((all, other) => all + position[other]!, 0)
      return [point, around.length === 0 ? position[point]! : sum / around.length]
    }),
  )
  layer.sort((a, b) => middle.get(a)! - middle.get(b)! || position[a]! - position[b]!)
  for (const [at, point] of layer.entries()) position[point] = at
}

/** The number of crossings: for each layer, inversions among the ends of its edges, counted in a binary tree. */
function crossings(layers: readonly number[][], down: readonly (readonly number[])[], position: Float64Array): number {
  let count = 0
  for (const [index, layer] of layers.slice(0, -1).entries()) {
    const width = layers[index + 1]!.length
    let first = 1
    while (first < width) first *= 2
    const tree = new Int32Array(2 * first)
    for (const point of layer) {
      const ends = down[point]!.map((end) => position[end]!).sort((a, b) => a - b)
      for (const end of ends) {
        for (let node = end + first; node > 1; node >>= 1) if (node % 2 === 0) count += tree[node + 1]!
      }
      for (const end of ends) for (let node = end + first; node > 0; node >>= 1) tree[node]!++
    }
  }
  return count
}
