/** Deletes a graph that has ended, with the records of all its tasks. */
import { ServiceError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { TaskStore } from '../store/tasks.ts'
import { knownGraph } from './named-tasks.ts'

export interface DeleteGraphParts {
  readonly store: TaskStore
  readonly persistence: Pick<Persistence, 'deleteGraph' | 'durable'>
  readonly log: Log
}

/**
 * Resolves once the deletion is on disk. A crash leaves all of the graph or nothing of it. Throws 404, 409 if the graph
 * has not ended, and 503 if the disk takes no writes.
 */
export async function deleteGraph(
  { store, persistence, log }: DeleteGraphParts,
  id: string,
  traceId: string,
): Promise<void> {
  const graph = knownGraph(store, id)
  if (graph.endedAt === undefined) throw new ServiceError(409, `graph is still running: ${id} (cancel it first)`)
  persistence.deleteGraph(graph)
  store.apply({ kind: 'graph-retired', graph, at: Date.now() })
  log.info('graph deleted', { trace_id: traceId, graph_id: id, tasks: graph.tasks.length })
  await persistence.durable()
}
