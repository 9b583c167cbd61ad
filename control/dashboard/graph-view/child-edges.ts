/**
 * The edges of the drawing. Pure.
 *
 * Children of a task that runs for each element of a list have no edges in the graph, those of a group only edges among
 * themselves. In the drawing the first of them hang on their task, and what waits for that task comes after the last of them: it
 * waits for all. Tasks of `on_end` come after what nothing else waits for.
 */
import { ON_END_IDS } from '../../../shared/contract/on-end.ts'
import type { GraphTask } from '../model/wire.ts'

type Edges = readonly (readonly [from: string, to: string])[]

/** Edges from the children of one task, or to the end of a graph. With more, only its first child has edges: it keeps the others out of the way. */
const MAX_CHILD_EDGES = 1_000

/** The same edges where there are neither children nor tasks of `on_end`. */
export const edgesOfDrawing = (tasks: readonly DrawnTask[], edges: Edges): Edges =>
  withChildEdges(tasks, withEndEdges(tasks, edges))

type DrawnTask = Pick<GraphTask, 'id' | 'parent'>

function withEndEdges(tasks: readonly DrawnTask[], edges: Edges): Edges {
  const isAtEnd = ({ id }: DrawnTask) => id.startsWith(ON_END_IDS) && /^\d+$/.test(id.slice(ON_END_IDS.length))
  const named = tasks.filter(isAtEnd)
  if (named.length === 0) return edges
  const linked = new Set(edges.flat())
  const atEnd = named.filter(({ id }) => !linked.has(id))
  const awaited = new Set(edges.map(([from]) => from))
  const last = tasks.filter((task) => task.parent === undefined && !atEnd.includes(task) && !awaited.has(task.id))
  const before = last.length * atEnd.length > MAX_CHILD_EDGES ? last.slice(-1) : last
  return [...edges, ...before.flatMap(({ id }) => atEnd.map((task): [string, string] => [id, task.id]))]
}

function withChildEdges(tasks: readonly DrawnTask[], edges: Edges): Edges {
  const childrenOf = new Map<string, string[]>()
  const isChild = new Set<string>()
  for (const { id, parent } of tasks) {
    if (parent === undefined) continue
    isChild.add(id)
    const children = childrenOf.get(parent)
    if (children === undefined) childrenOf.set(parent, [id])
    else children.push(id)
  }
  if (childrenOf.size === 0) return edges
  const after = Map.groupBy(
    edges.filter(([from]) => childrenOf.has(from)),
    ([from]) => from,
  )
  // Only children depend on children.
  const following = new Set(edges.flatMap(([from, to]) => (isChild.has(from) ? to : [])))
  const followed = new Set(edges.flatMap(([from]) => (isChild.has(from) ? from : [])))
  const more = [...childrenOf].flatMap(([parent, children]): [string, string][] => {
    const next = after.get(parent) ?? []
    const last = children.filter((child) => !followed.has(child))
    const before = last.length * next.length > MAX_CHILD_EDGES ? last.slice(0, 1) : last
    return [
      ...children.filter((child) => !following.has(child)).map((child): [string, string] => [parent, child]),
      ...next.flatMap(([, to]) => before.map((child): [string, string] => [child, to])),
    ]
  })
  return [...edges, ...more]
}
