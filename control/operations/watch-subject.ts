/** Finds the subject of an event stream. */

import type { Positions } from '../log/positions.ts'
import { knownGraph, knownTask, NotFound, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import type { WatchSubject } from './watch-request.ts'

/** The address of a graph or a task. */
export type WatchAddress = { readonly graphId: string; readonly id?: undefined } | TaskAddress

/**
 * The subject of a stream that a client opens, or resumes after the event `after`. A removed graph or task can be the
 * subject only of a resumed stream, while the history has later events of it. Throws `NotFound`.
 */
export async function watchSubject(
  { store, eventStreams }: OperationParts,
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
