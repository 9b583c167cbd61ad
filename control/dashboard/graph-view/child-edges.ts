/**
 * The edges of the drawing. Pure.
 *
 * Children of a task that runs for each element of a list have no edges in the graph. In the drawing they hang on their task, so
 * that many of them share a box beside it.
 */
import type { GraphTask } from '../model/wire.ts'

type Edges = readonly (readonly [from: string, to: string])[]

/** The same edges where there are no children. */
export function withChildEdges(tasks: readonly Pick<GraphTask, 'id' | 'parent'>[], edges: Edges): Edges {
  const more = tasks.flatMap(({ id, parent }): [string, string][] => (parent === undefined ? [] : [[parent, id]]))
  return more.length === 0 ? edges : [...edges, ...more]
}
