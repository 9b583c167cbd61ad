/** The tasks that a call means: those it names, or those of a graph. */
import { badRequest, ServiceError } from '../../shared/errors.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import type { TaskStore } from '../store/tasks.ts'

/** 404 for an id that no task, graph or call has that callers see. */
export class NotFound extends ServiceError {
  constructor(subject: 'task' | 'graph' | 'handle', id: string) {
    super(404, `${subject} not found: ${id}`)
  }
}

/** How a call names tasks: one of the two. */
export interface TaskNames {
  readonly task_ids?: string[]
  readonly graph_id?: string
}

export interface NamedTasks {
  readonly tasks: readonly Task[]
  /** The graph that all of `tasks` belong to; undefined where tasks were named. */
  readonly graph?: Graph
}

/** Throws 400 for a call that names none or both, `NotFound` for an unknown id. In slices, as a graph may be large. */
export async function namedTasks(store: TaskStore, { task_ids, graph_id }: TaskNames): Promise<NamedTasks> {
  if ((task_ids === undefined) === (graph_id === undefined)) throw badRequest('give either task_ids or graph_id')
  if (task_ids !== undefined) {
    if (task_ids.length === 0) throw badRequest('task_ids is empty')
    return { tasks: [...new Set(task_ids)].map((id) => knownTask(store, id)) }
  }
  const graph = knownGraph(store, graph_id!)
  return { tasks: await runCooperatively(visibleTasks(store, graph)), graph }
}

/** The graph that callers see under `id`. Throws `NotFound`. */
export function knownGraph(store: Pick<TaskStore, 'graph'>, id: string): Graph {
  const graph = store.graph(id)
  if (graph === undefined) throw new NotFound('graph', id)
  return graph
}

function* visibleTasks(store: TaskStore, graph: Graph): Steps<Task[]> {
  const visible: Task[] = []
  yield* inRanges(graph.tasks.length, (from, to) => {
    for (let i = from; i < to; i++) if (store.isVisible(graph.tasks[i]!)) visible.push(graph.tasks[i]!)
  })
  return visible
}

/** The task that callers see under `id`. Throws `NotFound`. */
export function knownTask(store: Pick<TaskStore, 'get'>, id: string): Task {
  const task = store.get(id)
  if (task === undefined) throw new NotFound('task', id)
  return task
}

/** The call of an MCP tool that callers see under `id`. Its handle is the id of its task. */
export function callOf(store: Pick<TaskStore, 'get'>, id: string): Task | undefined {
  const task = store.get(id)
  return task?.type === 'mcp' ? task : undefined
}

/** As `callOf`. Throws `NotFound`. */
export function knownCall(store: Pick<TaskStore, 'get'>, id: string): Task {
  const task = callOf(store, id)
  if (task === undefined) throw new NotFound('handle', id)
  return task
}
