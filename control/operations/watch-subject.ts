/** What a stream of events is about: all of the service, a graph, a task, or the past of one that was removed. */
import type { Graph, Task } from '../graph/graph.ts'
import type { EventFilter } from '../journal/event-feed.ts'
import type { TaskStore } from '../store/tasks.ts'
import { knownGraph, knownTask, NotFound, type TaskAddress } from './named-tasks.ts'

/** At most one of them; none stands for all of the service. */
export interface WatchSubject {
  readonly graph?: Graph
  readonly task?: Task
  /** A graph that callers do not see any more, or a task of a graph. The history may have events of it. */
  readonly removed?: RemovedSubject
}

export interface RemovedSubject {
  readonly graphId: string
  /** Undefined: the graph. */
  readonly taskId: string | undefined
}

/** How a caller names what a stream is about: a graph, or a task. */
export type WatchAddress = { readonly graphId: string; readonly id?: undefined } | TaskAddress

interface SubjectParts {
  readonly store: TaskStore
  readonly eventStreams: {
    /** Whether the history has an event of what was removed, after the event `after`. */
    hasPast(removed: RemovedSubject, after: number): Promise<boolean>
  }
}

/**
 * What a stream is about that a client opens, or resumes after the event `after`. Of a graph that was removed since, and
 * of a task of a graph, a client that resumes gets the rest of its past. Throws `NotFound`.
 */
export async function watchSubject(
  { store, eventStreams }: SubjectParts,
  address: WatchAddress,
  after: number | undefined,
): Promise<WatchSubject> {
  const { graphId, id } = address
  try {
    return id === undefined ? { graph: knownGraph(store, graphId) } : { task: knownTask(store, { ...address, id }) }
  } catch (error) {
    if (!(error instanceof NotFound) || graphId === undefined || after === undefined) throw error
    const removed = { graphId, taskId: id }
    if (!(await eventStreams.hasPast(removed, after))) throw error
    return { removed }
  }
}

export const filterOf = ({ graph, task, removed }: WatchSubject): EventFilter =>
  removed ?? { graphId: graph?.id ?? task?.graph.id, taskId: task?.id }
