/** Waits until tasks have ended, only people can let them go on, the time is up, or the caller has disconnected. */
import { runCooperatively } from '../../shared/process/steps.ts'
import { pause } from '../../shared/streams/pause.ts'
import { isApproval } from '../task/approval.ts'
import { approvalsLeft } from '../task/approvals-left.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { type NamedTasks, namedTasks, type TaskNames } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Milliseconds between two progress reports. Clients give up on a call that is silent for minutes. */
export const REPORT_INTERVAL_MS = 3_000

/** Milliseconds between two looks at the tasks. There may be 100,000 of them. */
const LOOK_PAUSE_MS = 50

/** The caller of a wait. */
export interface WaitCaller {
  /** Fires when the caller is gone. */
  readonly signal: AbortSignal
  /** Reports progress to the caller. `progress` must rise. */
  readonly report: (progress: number, total: number, message: string) => void
}

export interface WaitOptions {
  readonly until: 'all' | 'any'
  readonly timeoutMs: number
}

/** What an answer is made of: the tasks, and the approvals that they all wait for, if there is nothing else. */
export type WaitView<V> = (tasks: readonly Task[], approvals: readonly Task[]) => V

/**
 * Waits until the named tasks have ended, only approvals can let them go on, or the time is up, then returns what `view`
 * makes of them. Throws as `namedTasks`.
 */
export async function wait<V>(
  parts: OperationParts,
  { until, timeoutMs, ...names }: TaskNames & WaitOptions,
  waiter: WaitCaller,
  view: WaitView<V>,
): Promise<V> {
  return waitForTasks(parts, await namedTasks(parts.store, names), { until, timeoutMs }, waiter, view)
}

/** As `wait`, for known tasks. Returns what `view` makes of them once that is kept. */
export async function waitForTasks<V>(
  { store, keeper, stopping }: OperationParts,
  { tasks: named, graph }: NamedTasks,
  { until, timeoutMs }: WaitOptions,
  { signal, report }: WaitCaller,
  view: WaitView<V>,
): Promise<V> {
  let tasks = named
  let approvals: readonly Task[] = []
  const list = graph?.tasks
  if (timeoutMs > 0 && !isOver(tasks, until)) {
    const startedAt = performance.now()
    const reporting = setInterval(() => {
      const seconds = Math.round((performance.now() - startedAt) / 100) / 10
      const ended = tasks.filter(({ isTerminal }) => isTerminal).length
      report(seconds, timeoutMs / 1000, `${ended} of ${tasks.length} tasks have ended`)
    }, REPORT_INTERVAL_MS)
    const over = new AbortController()
    const late = setTimeout(() => over.abort(), timeoutMs)
    const ends = AbortSignal.any([signal, stopping, over.signal])
    void awaitedApprovals(store, tasks, ends).then((awaited) => {
      if (awaited.length === 0) return
      approvals = awaited
      over.abort()
    })
    try {
      if (until === 'any') await anyEnded(store, tasks, graph, ends)
      else await (graph === undefined ? allEnded(store, tasks, ends) : graphEnded(store, graph, ends))
    } finally {
      clearInterval(reporting)
      clearTimeout(late)
      over.abort()
    }
  }
  if (graph !== undefined && graph.tasks !== list && store.graph(graph.id) === graph)
    tasks = (await namedTasks(store, { graph_id: graph.id })).tasks // a patch
  const kept = keeper.kept('show')
  const shown = view(tasks, approvals)
  if (kept !== undefined) await kept
  return shown
}

/**
 * Waits until all of `tasks` have ended, only approvals can let them go on, or `until` fires; not at all without `until`.
 * Returns these approvals; none otherwise.
 */
export async function endOrApprovals(
  { store, stopping }: OperationParts,
  tasks: readonly Task[],
  until: AbortSignal | undefined,
): Promise<readonly Task[]> {
  if (until === undefined) return approvalsNow(tasks)
  const over = new AbortController()
  const ends = AbortSignal.any([until, stopping, over.signal])
  const approvals = awaitedApprovals(store, tasks, ends)
  void approvals.then((found) => found.length > 0 && over.abort())
  await allEnded(store, tasks, ends)
  over.abort()
  return approvals
}

/** Whether there is nothing more to wait for. */
export const isOver = (tasks: readonly Task[], until: 'all' | 'any'): boolean =>
  until === 'all' ? tasks.every(({ isTerminal }) => isTerminal) : tasks.some(({ isTerminal }) => isTerminal)

/** Waits for one task after the other. That needs one listener at a time, and ends with the last task in any order. */
export async function allEnded(store: TaskStore, tasks: readonly Task[], ends: AbortSignal): Promise<void> {
  for (const task of tasks) {
    if (ends.aborted) return
    if (!task.isTerminal) await store.whenEnded(task, ends)
  }
}

/** As `allEnded`, for all tasks of a graph. A patch may give it others meanwhile. */
export async function graphEnded(store: TaskStore, graph: Graph, ends: AbortSignal): Promise<void> {
  let tasks: readonly Task[]
  do {
    tasks = graph.tasks
    await allEnded(store, tasks, ends)
  } while (tasks !== graph.tasks && !ends.aborted)
}

/** Waits in a loop, because deleted tasks also wake the callers that wait for the graph. */
async function anyEnded(
  store: TaskStore,
  tasks: readonly Task[],
  graph: Graph | undefined,
  ends: AbortSignal,
): Promise<void> {
  while (!ends.aborted && !tasks.some(({ isTerminal, isDeleted }) => isTerminal || isDeleted))
    await store.whenAnyEnds(graph === undefined ? tasks : [graph], ends)
}

/** The approvals of `approvalsLeft` at present; empty if it has none. */
const approvalsNow = async (tasks: readonly Task[]): Promise<readonly Task[]> =>
  (await runCooperatively(approvalsLeft(tasks))) ?? []

/** Resolves once `approvalsLeft` has some, or `ends` fires: empty then. At once if no graph of `tasks` has an approval. */
async function awaitedApprovals(store: TaskStore, tasks: readonly Task[], ends: AbortSignal): Promise<readonly Task[]> {
  const graphs = [...new Set(tasks.map(({ graph }) => graph))].filter((graph) => graph.tasks.some(isApproval))
  while (graphs.length > 0 && !ends.aborted) {
    const looked = new AbortController()
    const until = AbortSignal.any([ends, looked.signal])
    let isStale = false
    const changed = Promise.race([store.whenAnyEnds(graphs, until), store.whenAnyAsked(graphs, until)])
    void changed.then(() => {
      isStale = true
    })
    const approvals = await approvalsNow(tasks)
    if (approvals.length > 0 && !isStale) {
      looked.abort()
      return approvals
    }
    await changed
    looked.abort()
    await pause(LOOK_PAUSE_MS, ends).catch(() => {})
  }
  return []
}
