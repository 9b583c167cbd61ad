/** The box that an arrow key leads to. Pure. */
import type { Boxes } from './boxes.ts'
import type { Drawing } from './geometry.ts'

/** Right and left follow the edges, up and down stay in the layer: to the nearest box. Undefined if there is none. */
export function neighbour(
  key: string,
  from: number,
  { layerOf, rowOf }: Pick<Drawing, 'layerOf' | 'rowOf'>,
  edges: Boxes['edges'],
): number | undefined {
  const near = (boxes: readonly number[]) =>
    boxes.toSorted((a, b) => Math.abs(rowOf[a]! - rowOf[from]!) - Math.abs(rowOf[b]! - rowOf[from]!))[0]
  if (key === 'ArrowRight') return near(edges.filter(([a]) => a === from).map(([, b]) => b))
  if (key === 'ArrowLeft') return near(edges.filter(([, b]) => b === from).map(([a]) => a))
  const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0
  if (step === 0) return undefined
  const same = [...rowOf.keys()].filter(
    (box) => layerOf[box] === layerOf[from] && (rowOf[box]! - rowOf[from]!) * step > 0,
  )
  return near(same)
}
