/** The tasks that a call means: those it names, or those of a graph. */
import { badRequest, ServiceError } from '../../shared/errors.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/steps.ts'
import type { Graph } from '../graph/graph.ts'
import type { Task } from '../graph/task.ts'
import type { TaskStore } from '../store/tasks.ts'
import { findGraph } from './task-filter.ts'

export interface NamedTasks {
  readonly tasks: readonly Task[]
  /** All of whose tasks they are; undefined where tasks were named. */
  readonly graph?: Graph
}

/** Throws 400 for a call that names none or both, 404 for what is not there. In slices, as a graph may be large. */
export async function namedTasks(
  store: TaskStore,
  { task_ids, graph_id }: { task_ids?: string[]; graph_id?: string },
): Promise<NamedTasks> {
  if ((task_ids === undefined) === (graph_id === undefined)) throw badRequest('give either task_ids or graph_id')
  if (task_ids !== undefined) {
    if (task_ids.length === 0) throw badRequest('task_ids is empty')
    return { tasks: [...new Set(task_ids)].map((id) => namedTask(store, id)) }
  }
  const graph = await runCooperatively(findGraph(store, graph_id!))
  const tasks = graph === undefined ? [] : await runCooperatively(visibleTasks(store, graph))
  if (graph === undefined || tasks.length === 0)
    throw new ServiceError(404, `graph not found: ${graph_id} (list_tasks shows what there is)`)
  return { tasks, graph }
}

function* visibleTasks(store: TaskStore, graph: Graph): Steps<Task[]> {
  const visible: Task[] = []
  yield* inRanges(graph.tasks.length, (from, to) => {
    for (let i = from; i < to; i++) if (store.isVisible(graph.tasks[i]!)) visible.push(graph.tasks[i]!)
  })
  return visible
}

/** Throws 404. */
export function namedTask(store: TaskStore, id: string): Task {
  const task = store.get(id)
  if (task !== undefined) return task
  throw new ServiceError(404, `task not found: ${id} (list_tasks shows what there is)`)
}
