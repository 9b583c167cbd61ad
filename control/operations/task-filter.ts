/** Selects the tasks of a list, and pages through them with cursors. */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { ToolRef } from '../rules/normalize.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'

/** Absent and empty members match all tasks. `graphId` selects graphs (`graphsOf`), the others tasks (`isWanted`). */
export interface TaskFilter {
  readonly statuses?: readonly TaskStatus[]
  /** A type without a tool matches all tools of the type. */
  readonly tools?: readonly ToolRef[]
  readonly graphId?: string | undefined
  /** Includes tasks of the graph `graphId` that callers find only within their graph. */
  readonly isWholeGraph?: boolean
}

/** Whether the filter matches `task`. */
export const isListed = (store: TaskStore, filter: TaskFilter, task: Task): boolean =>
  (filter.isWholeGraph ? store.hasRecord(task) : store.isVisible(task)) && isWanted(filter, task)

export const isWanted = ({ statuses = [], tools = [] }: TaskFilter, task: Task): boolean =>
  (statuses.length === 0 || statuses.includes(task.status)) &&
  (tools.length === 0 || tools.some((tool) => isOf(tool, task)))

const isOf = ({ type, toolName }: ToolRef, task: Task): boolean =>
  task.type === type && (toolName === undefined || task.toolName === toolName)

/**
 * The position of a task in the list: the number of its graph, and its position there. The task may no longer exist.
 */
export interface Place {
  readonly ordinal: number
  readonly position: number
}

/** The position of a task as a cursor. */
export const cursorOf = ({ graph, position }: Task): string => `${graph.ordinal}-${position}`

/** Undefined if the text is not a cursor. */
export function placeOf(cursor: string): Place | undefined {
  const match = /^(\d{1,16})-(\d{1,9})$/.exec(cursor)
  return match === null ? undefined : { ordinal: Number(match[1]), position: Number(match[2]) }
}

export interface PageRequest {
  readonly filter: TaskFilter
  readonly after: Place | undefined
  readonly limit: number
}

export interface Page {
  readonly tasks: readonly Task[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
}

/** The accepted graphs whose tasks may match. Looks only at graphs, because one may have a million tasks. */
export function graphsOf(store: TaskStore, { graphId }: TaskFilter): Iterable<Graph> {
  if (graphId === undefined) return store.graphs
  const graph = store.graph(graphId)
  return graph === undefined ? [] : [graph]
}

/** The tasks to match against the filter, oldest first. The store may change while they are read. */
export function candidates(store: TaskStore, filter: TaskFilter): Generator<Task> {
  const graphs = graphsOf(store, filter)
  return filter.isWholeGraph ? store.recordedTasks(graphs) : store.visibleTasks(graphs)
}

/**
 * Returns the next `limit` matching tasks, in the order of their creation.
 *
 * Numbers of graphs only nearly follow that order, because a graph gets its number before its body is decoded. So the
 * page starts after the graph of `after`, wherever that is in the order. If that graph is gone, the page starts with
 * graphs of higher numbers.
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
  /** Leaves out graphs that were accepted after this change. */
  readonly until: number
}

/** A page of tasks. `from` returns the first position to look at in each graph. */
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
