/** The present state of the subject of an event stream, for clients that cannot resume the stream. */
import { type EventData, MAX_RESET_GRAPHS, MAX_RESET_TASKS, type TaskEventState } from '../../shared/contract/events.ts'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { taskEventState } from '../log/event-rows.ts'
import type { Graph, Task } from '../task/graph.ts'
import { graphSummary } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { WatchParts, WatchSubject } from './watch-request.ts'

export type PresentState = Partial<
  Pick<EventData<'reset'>, 'graph_id' | 'task' | 'graph' | 'tasks' | 'graphs' | 'truncated'>
>

/** Works in slices, so the state may include changes made meanwhile. Their events follow. */
export async function presentState(
  { store, waiting }: Pick<WatchParts, 'store' | 'waiting'>,
  { graph, task, removed }: WatchSubject,
): Promise<PresentState> {
  if (removed !== undefined) return { graph_id: removed.graphId }
  const stateOf = (task: Task): TaskEventState => {
    const reason = waiting.reasonOf(task)
    return { ...taskEventState(task), ...(reason !== undefined && { waiting: reason }) }
  }
  if (task !== undefined) return { graph_id: task.graph.id, task: stateOf(task) }
  return runCooperatively(graph === undefined ? stateOfAll(store) : stateOfGraph(graph, stateOf))
}

function* stateOfGraph(graph: Graph, stateOf: (task: Task) => TaskEventState): Steps<PresentState> {
  const tasks: TaskEventState[] = []
  let isTruncated = false
  for (let i = 0; i < graph.tasks.length && !isTruncated; i++) {
    const task = graph.tasks[i]!
    isTruncated = !task.isDeleted && tasks.length === MAX_RESET_TASKS
    if (!task.isDeleted && !isTruncated) tasks.push(stateOf(task))
    if (isYieldDue(i)) yield
  }
  const summary = yield* graphSummary(graph)
  return { graph_id: graph.id, graph: summary, tasks, ...(isTruncated && { truncated: true }) }
}

function* stateOfAll(store: TaskStore): Steps<PresentState> {
  const graphs: GraphSummary[] = []
  const all = [...store.graphs].filter(({ isRetired }) => !isRetired)
  for (const graph of all.slice(-MAX_RESET_GRAPHS).reverse()) {
    graphs.push(yield* graphSummary(graph))
    yield
  }
  return { graphs, ...(all.length > MAX_RESET_GRAPHS && { truncated: true }) }
}
