/** Cancels tasks, and answers with the state of each task and of those downstream once that state is on disk. */
import type { CancelledTask } from '../../shared/contract/control.ts'
import { type CancelGraphResponse, MAX_CANCELLED_ENTRIES } from '../../shared/contract/graphs.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { type Caller, hasRight, lacking } from '../../shared/http/callers.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import type { Graph, Task } from '../task/graph.ts'
import { graphTotals } from '../task/graph-summary.ts'
import { knownGraph, knownTask, namedTasks, type TaskAddress, type TaskNames } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Throws 403 for a token that may cancel only what it submitted itself. */
export function ensureMayCancel(tasks: readonly { readonly graph: Graph }[], by: Caller | undefined): void {
  if (by === undefined || hasRight(by, 'cancel')) return
  const isOwn = tasks.every(({ graph }) => graph.submittedBy === by.grant.name)
  if (!isOwn || !hasRight(by, 'cancel_own')) throw lacking(by, 'cancel')
}

/**
 * Cancels one task. The first entry is that of the task; those of skipped tasks downstream follow. An ended task does
 * not change. Throws 404, 403 for a task of others, and 503 if the disk takes no writes.
 */
export async function cancelTask(
  { store, scheduler, keeper }: OperationParts,
  address: TaskAddress,
  by: Caller | undefined,
): Promise<CancelledTask[]> {
  const task = knownTask(store, address)
  ensureMayCancel([task], by)
  const hadEnded = task.isTerminal
  keeper.assertWritableWithReserve()
  const skipping = scheduler.cancel(task)
  // The status right after the request. The task may have stopped by the time the change is on disk.
  const named = hadEnded ? endedTask(task) : cancelledTask(task)
  const skipped = (await skipping).map(cancelledTask)
  await keeper.kept('promise')
  return [named, ...skipped]
}

export interface TaskStatusEntry {
  /** `Task.address`. */
  readonly id: string
  readonly status: TaskStatus
}

/**
 * Cancels the named tasks, or all tasks of a graph that have not ended. The entries are those of the cancelled tasks in
 * order, then those of skipped tasks downstream. Works in steps. Throws as `cancelTask`.
 */
export async function cancelTasks(
  parts: OperationParts,
  names: TaskNames,
  by: Caller | undefined,
): Promise<TaskStatusEntry[]> {
  const { tasks, graph } = await namedTasks(parts.store, names)
  ensureMayCancel(graph === undefined ? tasks : [{ graph }], by)
  const statuses =
    graph === undefined
      ? await cancelAll(parts, tasks)
      : await cancelWhole(parts, graph, ({ isTerminal, waitsForEnd }) => !isTerminal && !waitsForEnd)
  return Array.from(statuses, ([{ address }, status]) => ({ id: address, status }))
}

/**
 * Cancels all tasks of a graph that have not ended. The entries are those of the cancelled tasks, then those of skipped
 * tasks. Throws as `cancelTask`.
 */
export async function cancelGraph(
  parts: OperationParts,
  id: string,
  by: Caller | undefined,
): Promise<CancelGraphResponse> {
  const graph = knownGraph(parts.store, id)
  ensureMayCancel([{ graph }], by)
  const statuses = await cancelWhole(
    parts,
    graph,
    ({ isTerminal, status, waitsForEnd }) => !isTerminal && status !== 'cancelling' && !waitsForEnd,
  )
  const changed = [...statuses].slice(0, MAX_CANCELLED_ENTRIES)
  const { state } = await runCooperatively(graphTotals(graph))
  return {
    ...{ graph_id: id, state, tasks: changed.map(([task, status]) => cancelledTask({ id: task.id, status })) },
    ...(statuses.size > changed.length && { truncated: true }),
  }
}

/**
 * As `cancelAll`, for those tasks of `graph` that are wanted. Cancels the attempts of its deleted tasks, too. These are in no
 * answer, but the graph ends only with them, and nobody else can end them. No patch adds a task that the cancel would not reach.
 */
async function cancelWhole(
  parts: OperationParts,
  graph: Graph,
  isWanted: (task: Task) => boolean,
): Promise<ReadonlyMap<Task, TaskStatus>> {
  const before = graph.isCancelled
  graph.isCancelled = true
  try {
    const { tasks } = await namedTasks(parts.store, { graph_id: graph.id })
    const hidden = [...parts.store.hiddenRunning].filter((task) => task.graph === graph && task.status !== 'cancelling')
    const statuses = await cancelAll(parts, [...tasks.filter(isWanted), ...hidden])
    return new Map([...statuses].filter(([task]) => !task.isDeleted))
  } catch (error) {
    graph.isCancelled = before
    throw error
  }
}

/**
 * Cancels `tasks`. Resolves with the entries of these, then of skipped tasks downstream, once the change is on disk.
 */
async function cancelAll(
  { scheduler, keeper }: OperationParts,
  tasks: readonly Task[],
): Promise<ReadonlyMap<Task, TaskStatus>> {
  keeper.assertWritableWithReserve()
  const statuses = new Map<Task, TaskStatus>(tasks.map((task) => [task, task.status]))
  const { skipped } = await runCooperatively(scheduler.cancelAll(tasks, (task) => statuses.set(task, task.status)))
  for (const task of await skipped) if (!statuses.has(task)) statuses.set(task, task.status)
  await keeper.kept('promise')
  return statuses
}

/** The entry of a task that had already ended. */
function endedTask({ id, status, rare: { failure } }: Task): CancelledTask {
  return { task_id: id, status, runtime: { status, ...(failure !== undefined && { error: { code: failure.code } }) } }
}

/** The entry of a task that is cancelled, is being cancelled, or is skipped because a dependency was cancelled. */
function cancelledTask({ id, status }: Pick<Task, 'id' | 'status'>): CancelledTask {
  return {
    task_id: id,
    status,
    runtime: { status: status === 'cancelling' ? 'cancelling' : 'cancelled', error: { code: 'cancelled' } },
    event: { type: 'task_cancel_requested', task_id: id },
  }
}
