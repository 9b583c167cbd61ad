/** The subject of an event stream: the whole service, a graph, a task, or a removed graph or task. */

import type { EventFilter } from '../log/event-feed.ts'
import type { Positions } from '../log/positions.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/tasks.ts'
import { knownGraph, knownTask, NotFound, type TaskAddress } from './named-tasks.ts'

/** At most one member is set. Without any, the subject is the whole service. */
export interface WatchSubject {
  readonly graph?: Graph
  readonly task?: Task
  /** A removed graph or task that the history still has events of. */
  readonly removed?: RemovedSubject
}

export interface RemovedSubject {
  readonly graphId: string
  /** Undefined if the subject is the graph. */
  readonly taskId: string | undefined
}

/** The address of a graph or a task. */
export type WatchAddress = { readonly graphId: string; readonly id?: undefined } | TaskAddress

interface SubjectParts {
  readonly store: TaskStore
  readonly eventStreams: {
    /** Whether the history has an event of `removed` after the event `after`. */
    hasPast(removed: RemovedSubject, after: number | Positions): Promise<boolean>
  }
}

/**
 * The subject of a stream that a client opens, or resumes after the event `after`. A removed graph or task can be the
 * subject only of a resumed stream, while the history has later events of it. Throws `NotFound`.
 */
export async function watchSubject(
  { store, eventStreams }: SubjectParts,
  address: WatchAddress,
  after: number | Positions | undefined,
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
