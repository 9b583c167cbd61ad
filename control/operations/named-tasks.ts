/** Finds the tasks of a call: the named tasks, or all tasks of a graph. */
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'

/** 404: callers see no task, graph or call with this id. */
export class NotFound extends ServiceError {
  constructor(
    readonly subject: 'task' | 'graph' | 'handle',
    id: string,
  ) {
    super(404, `${subject} not found: ${id}`)
  }
}

/** The address of a task: its id in the service, or its id in a graph. */
export interface TaskAddress {
  readonly id: string
  readonly graphId?: string
}

/** The tasks that a call names. One of the members is set. */
export interface TaskNames {
  /** Ids of tasks of the service, or `graph_id/task_id`. */
  readonly task_ids?: string[]
  readonly graph_id?: string
}

export interface NamedTasks {
  readonly tasks: readonly Task[]
  /** The graph, if the call names a graph. */
  readonly graph?: Graph
}

/** Throws 400 if the call names neither tasks nor a graph, or both. Throws `NotFound`. Works in slices. */
export async function namedTasks(store: TaskStore, { task_ids, graph_id }: TaskNames): Promise<NamedTasks> {
  if ((task_ids === undefined) === (graph_id === undefined)) throw badRequest('give either task_ids or graph_id')
  if (task_ids !== undefined) {
    if (task_ids.length === 0) throw badRequest('task_ids is empty')
    return { tasks: [...new Set(task_ids.map((text) => knownTask(store, addressOf(store, text))))] }
  }
  const graph = knownGraph(store, graph_id!)
  return { tasks: await runCooperatively(tasksOf(store, graph)), graph }
}

function* tasksOf(store: TaskStore, graph: Graph): Steps<Task[]> {
  const tasks: Task[] = []
  const all = graph.tasks // a patch gives the graph another list
  yield* inRanges(all.length, (from, to) => {
    for (let i = from; i < to; i++) if (store.hasRecord(all[i]!)) tasks.push(all[i]!)
  })
  return tasks
}

/** The address in an argument: the id of a task of the service, or else `graph_id/task_id`. */
export function addressOf(store: Pick<TaskStore, 'get' | 'graph'>, text: string): TaskAddress {
  if (store.get(text) !== undefined) return { id: text }
  const slash = text.indexOf('/')
  const graphId = text.slice(0, Math.max(0, slash))
  return store.graph(graphId) === undefined ? { id: text } : { id: text.slice(slash + 1), graphId }
}

/** The task that callers see under `address`. Throws `NotFound`. */
export function knownTask(
  store: Pick<TaskStore, 'get' | 'graph' | 'taskIn'> & Partial<Pick<TaskStore, 'areIdsOfGraphs'>>,
  { id, graphId }: TaskAddress,
): Task {
  const task = graphId === undefined ? store.get(id) : store.taskIn(knownGraph(store, graphId), id)
  if (task !== undefined) return task
  if (graphId !== undefined) throw new NotFound('task', `${id} in graph ${graphId}`)
  const remedy = ' (the ids of tasks of a tenant belong to their graphs: name it as graph_id/task_id)'
  throw new NotFound('task', store.areIdsOfGraphs ? id + remedy : id)
}

/** The graph that callers see under `id`. Throws `NotFound`. */
export function knownGraph(store: Pick<TaskStore, 'graph'>, id: string): Graph {
  const graph = store.graph(id)
  if (graph === undefined) throw new NotFound('graph', id)
  return graph
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
