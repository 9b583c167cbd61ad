/** Deletes the record of a task, or a graph that has ended with the records of all its tasks. */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { TaskStore } from '../task/task-store.ts'
import { knownGraph, knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Deletions that are remembered because it is not certain that they are on disk. Older ones are forgotten. */
export const MAX_UNCERTAIN_DELETIONS = 10_000

/** For each store: the keys of deletions that may not be on disk yet. */
const uncertain = new WeakMap<TaskStore, Set<string>>()

/** Resolves once the deletion is on disk. Throws 404, and 503 if the disk takes no writes. */
export async function deleteTask(parts: OperationParts, address: TaskAddress): Promise<void> {
  const { store, scheduler, keeper } = parts
  const key = `${address.graphId ?? ''}/${address.id}`
  const task = await unlessDeleted(parts, key, () => knownTask(store, address))
  keeper.assertWritableWithReserve()
  scheduler.delete(task)
  await certain(parts, key)
}

/**
 * Resolves once the deletion is on disk. A crash leaves all of the graph or nothing of it. Throws 404, 409 if the graph
 * has not ended, and 503 if the disk takes no writes.
 */
export async function deleteGraph(parts: OperationParts, id: string, traceId: string): Promise<void> {
  const { store, keeper, log } = parts
  if (store.graph(id) === undefined && (await keeper.others.removeUnreadable(id))) {
    log.info('graph deleted', { trace_id: traceId, graph_id: id, tasks: 0 })
    return
  }
  const graph = await unlessDeleted(parts, id, () => knownGraph(store, id))
  if (graph.endedAt === undefined) throw new ServiceError(409, `graph is still running: ${id} (cancel it first)`)
  keeper.deleteGraph(graph)
  store.apply({ kind: 'graph-retired', graph, at: Date.now() })
  log.info('graph deleted', { trace_id: traceId, graph_id: id, tasks: graph.tasks.length })
  await certain(parts, id)
}

/**
 * What `find` returns. Throws its 404 only once an earlier deletion is on disk: whoever repeats a deletion whose answer was
 * lost takes the 404 for success, and a crash must not bring the record back.
 */
async function unlessDeleted<T>(parts: OperationParts, key: string, find: () => T): Promise<T> {
  try {
    return find()
  } catch (error) {
    if (uncertain.get(parts.store)?.has(key)) await certain(parts, key)
    throw error
  }
}

/** Resolves once the deletion of `key` is on disk, with all changes before it. */
async function certain({ store, keeper }: OperationParts, key: string): Promise<void> {
  const keys = uncertain.get(store) ?? new Set<string>()
  uncertain.set(store, keys)
  if (keys.size >= MAX_UNCERTAIN_DELETIONS) keys.delete(keys.values().next().value!)
  keys.add(key)
  await keeper.kept('promise')
  keys.delete(key)
}
