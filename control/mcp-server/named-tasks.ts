/** The tasks that a call means: those it names, or those of a graph. */
import { badRequest, ServiceError } from '../../shared/errors.ts'
import { inSlices, isYieldDue, type Slices } from '../../shared/slices.ts'
import type { Graph } from '../graph/graph.ts'
import type { Task } from '../graph/task.ts'
import type { TaskStore } from '../store/tasks.ts'

/** Throws 400 for a call that names none or both, 404 for what is not there. */
export async function namedTasks(
  store: TaskStore,
  { task_ids, graph_id }: { task_ids?: string[]; graph_id?: string },
): Promise<Task[]> {
  if ((task_ids === undefined) === (graph_id === undefined)) throw badRequest('give either task_ids or graph_id')
  if (task_ids !== undefined) {
    if (task_ids.length === 0) throw badRequest('task_ids is empty')
    return [...new Set(task_ids)].map((id) => namedTask(store, id))
  }
  const graph = await inSlices(findGraph(store, graph_id!))
  const tasks = graph?.tasks.filter((task) => store.isVisible(task)) ?? []
  if (tasks.length === 0) throw new ServiceError(404, `graph not found: ${graph_id} (list_tasks shows what there is)`)
  return tasks
}

/** Throws 404. */
export function namedTask(store: TaskStore, id: string): Task {
  const task = store.get(id)
  if (task !== undefined) return task
  throw new ServiceError(404, `task not found: ${id} (list_tasks shows what there is)`)
}

function* findGraph(store: TaskStore, id: string): Slices<Graph | undefined> {
  let i = 0
  for (const graph of store.graphs) {
    if (graph.id === id && !graph.isRetired) return graph
    if (isYieldDue(i++)) yield
  }
  return undefined
}
