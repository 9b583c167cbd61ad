/** Deletes the record of a task, or a graph that has ended with the records of all its tasks. */
import { ServiceError } from '../../shared/contract/errors.ts'
import { knownGraph, knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Resolves once the deletion is on disk. Throws 404, and 503 if the disk takes no writes. */
export async function deleteTask({ store, scheduler, keeper }: OperationParts, address: TaskAddress): Promise<void> {
  const task = knownTask(store, address)
  keeper.assertWritableWithReserve()
  scheduler.delete(task)
  await keeper.kept('promise')
}

/**
 * Resolves once the deletion is on disk. A crash leaves all of the graph or nothing of it. Throws 404, 409 if the graph
 * has not ended, and 503 if the disk takes no writes.
 */
export async function deleteGraph({ store, keeper, log }: OperationParts, id: string, traceId: string): Promise<void> {
  if (store.graph(id) === undefined && (await keeper.others.removeUnreadable(id))) {
    log.info('graph deleted', { trace_id: traceId, graph_id: id, tasks: 0 })
    return
  }
  const graph = knownGraph(store, id)
  if (graph.endedAt === undefined) throw new ServiceError(409, `graph is still running: ${id} (cancel it first)`)
  keeper.deleteGraph(graph)
  store.apply({ kind: 'graph-retired', graph, at: Date.now() })
  log.info('graph deleted', { trace_id: traceId, graph_id: id, tasks: graph.tasks.length })
  await keeper.kept('promise')
}
