/**
 * Tasks of this service in an order that replicas share: by the creation of their graphs, then by position.
 *
 * The order of graphs in memory is that of their acceptance or adoption, so a page looks at all graphs.
 */
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { SharedOrder } from './joined-pages.ts'
import { isListed, type Place, type TaskFilter } from './task-filter.ts'

/** Graphs that one look at all of them finds. */
const GRAPHS_PER_LOOK = 1_000

/** A place in the order of all replicas. */
export interface SharedPlace extends Place {
  /** When the graph was created; milliseconds since 1970. */
  readonly createdAt: number
}

export const placeOfTask = ({ graph, position }: Task): SharedPlace => ({
  ...{ createdAt: graph.createdAt, ordinal: graph.ordinal, position },
})

export const sharedCursor = ({ createdAt, ordinal, position }: SharedPlace): string =>
  `${createdAt}-${ordinal}-${position}`

/** Undefined if the text is not a cursor. */
export function sharedPlaceOf(cursor: string): SharedPlace | undefined {
  const [, createdAt, ordinal, position] = /^(\d{1,15})-(\d{1,16})-(\d{1,9})$/.exec(cursor) ?? []
  if (position === undefined) return undefined
  return { createdAt: Number(createdAt), ordinal: Number(ordinal), position: Number(position) }
}

export const inOrder = (a: SharedPlace, b: SharedPlace): number =>
  a.createdAt - b.createdAt || a.ordinal - b.ordinal || a.position - b.position

export const OLDEST_TASKS_FIRST: SharedOrder<SharedPlace> = {
  compare: inOrder,
  cursor: sharedCursor,
  placeOf: sharedPlaceOf,
}

/** The next `limit` matching tasks. */
export function* placedTasks(
  store: TaskStore,
  filter: TaskFilter,
  after: SharedPlace | undefined,
  limit: number,
): Steps<Task[]> {
  const tasks: Task[] = []
  let steps = 0
  for (let from = after; ; ) {
    const graphs: readonly Graph[] = yield* nextGraphs(store, from)
    for (const graph of graphs) {
      const first = from?.ordinal === graph.ordinal ? from.position + 1 : 0
      for (let i = first; i < graph.tasks.length; i++) {
        if (isListed(store, filter, graph.tasks[i]!)) tasks.push(graph.tasks[i]!)
        if (tasks.length === limit) return tasks
        if (isYieldDue(steps++)) yield
      }
    }
    const last = graphs.at(-1)
    if (last === undefined || graphs.length < GRAPHS_PER_LOOK) return tasks
    from = { createdAt: last.createdAt, ordinal: last.ordinal, position: last.tasks.length }
  }
}

/** The first graphs in order with a task after `from`. */
function* nextGraphs(store: TaskStore, from: SharedPlace | undefined): Steps<Graph[]> {
  let found: Graph[] = []
  let steps = 0
  for (const graph of store.graphs) {
    if (isYieldDue(steps++)) yield
    if (graph.isRetired || (from !== undefined && inOrder(lastPlaceOf(graph), from) <= 0)) continue
    found.push(graph)
    if (found.length >= 2 * GRAPHS_PER_LOOK) found = firstOf(found)
  }
  return firstOf(found)
}

const lastPlaceOf = (graph: Graph): SharedPlace => ({
  ...{ createdAt: graph.createdAt, ordinal: graph.ordinal, position: graph.tasks.length - 1 },
})

const firstOf = (graphs: Graph[]): Graph[] =>
  graphs.sort((a, b) => inOrder(lastPlaceOf(a), lastPlaceOf(b))).slice(0, GRAPHS_PER_LOOK)
