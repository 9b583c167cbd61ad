/** Which tasks a list contains, and after which place in the order of all tasks it continues. */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { isYieldDue, type Steps } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import type { ToolRef } from '../graph/normalize.ts'
import type { TaskStore } from '../store/tasks.ts'

/** An absent or empty member excludes nothing. `graphId` chooses graphs (`graphsOf`), the others tasks (`isWanted`). */
export interface TaskFilter {
  readonly statuses?: readonly TaskStatus[]
  /** A type without a tool matches all tools of the type. */
  readonly tools?: readonly ToolRef[]
  readonly graphId?: string | undefined
  /** All tasks of the graph `graphId`: also those that callers see below it only. */
  readonly isWholeGraph?: boolean
}

/** Whether a list with this filter contains `task`. */
export const isListed = (store: TaskStore, filter: TaskFilter, task: Task): boolean =>
  (filter.isWholeGraph ? store.hasRecord(task) : store.isVisible(task)) && isWanted(filter, task)

export const isWanted = ({ statuses = [], tools = [] }: TaskFilter, task: Task): boolean =>
  (statuses.length === 0 || statuses.includes(task.status)) &&
  (tools.length === 0 || tools.some((tool) => isOf(tool, task)))

const isOf = ({ type, toolName }: ToolRef, task: Task): boolean =>
  task.type === type && (toolName === undefined || task.toolName === toolName)

/** A task by the number of its graph and its position in the graph. The task may no longer exist. */
export interface Place {
  readonly ordinal: number
  readonly position: number
}

/** The place of a task as a cursor. */
export const cursorOf = ({ graph, position }: Task): string => `${graph.ordinal}-${position}`

/** Undefined for a text that is no cursor. */
export function placeOf(cursor: string): Place | undefined {
  const match = /^(\d{1,15})-(\d{1,9})$/.exec(cursor)
  return match === null ? undefined : { ordinal: Number(match[1]), position: Number(match[2]) }
}

export interface PageRequest {
  readonly filter: TaskFilter
  readonly after: Place | undefined
  readonly limit: number
}

export interface Page {
  readonly tasks: readonly Task[]
  /** Of the next page; undefined on the last. */
  readonly nextCursor: string | undefined
}

/** The accepted graphs whose tasks `filter` may want. Looks at graphs only, as they may have a million tasks. */
export function graphsOf(store: TaskStore, { graphId }: TaskFilter): Iterable<Graph> {
  if (graphId === undefined) return store.graphs
  const graph = store.graph(graphId)
  return graph === undefined ? [] : [graph]
}

/** The tasks that a list with this filter looks at, oldest first. Stays valid while the store changes. */
export function candidates(store: TaskStore, filter: TaskFilter): Generator<Task> {
  const graphs = graphsOf(store, filter)
  return filter.isWholeGraph ? store.recordedTasks(graphs) : store.visibleTasks(graphs)
}

/**
 * The next `limit` of the wanted tasks, in the order of their creation.
 *
 * Numbers of graphs are only nearly in that order: a graph that takes long to read gets its number before it is created.
 * So the graph of `after` is searched for. If it is gone, the page starts with graphs of higher numbers.
 */
export function* pageOf(store: TaskStore, { filter, after, limit }: PageRequest): Steps<Page> {
  const until = store.seq
  let hasPassedCursor = after === undefined
  const page = yield* tasksOf(store, { filter, limit, until }, (graph) => {
    if (after === undefined || hasPassedCursor) return 0
    if (graph.ordinal !== after.ordinal) return graph.tasks.length
    hasPassedCursor = true
    return after.position + 1
  })
  if (after === undefined || hasPassedCursor) return page
  return yield* tasksOf(store, { filter, limit, until }, (graph) =>
    graph.ordinal > after.ordinal ? 0 : graph.tasks.length,
  )
}

interface Selection {
  readonly filter: TaskFilter
  readonly limit: number
  /** Graphs that were accepted after this change are left out. */
  readonly until: number
}

/** A page of the tasks. `from` gives the first position of each graph. */
function* tasksOf(store: TaskStore, { filter, limit, until }: Selection, from: (graph: Graph) => number): Steps<Page> {
  const tasks: Task[] = []
  let steps = 0
  for (const graph of graphsOf(store, filter)) {
    if (graph.acceptedSeq > until) break
    const first = from(graph)
    if (isYieldDue(steps++)) yield
    if (graph.isRetired) continue
    for (let i = first; i < graph.tasks.length; i++) {
      const task = graph.tasks[i]!
      if (isListed(store, filter, task)) {
        if (tasks.length === limit) return { tasks, nextCursor: cursorOf(tasks.at(-1)!) }
        tasks.push(task)
      }
      if (isYieldDue(steps++)) yield
    }
  }
  return { tasks, nextCursor: undefined }
}
