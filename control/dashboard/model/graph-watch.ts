/**
 * One graph in the page: the answer of `GET /graphs/{id}`, and every event since.
 *
 * Each event names the number of the event before it in the stream. If that is not the last event seen, events are
 * missing, and the page reads the graph again. So it does when tasks appear that it does not have: the children of a task, and
 * what a caller has made of the graph.
 */
import { countsOf, endedCount, moved, runningAgain, waitingCounts } from './counts.ts'
import { hasEnded } from './looks.ts'
import { withPatch } from './patch.ts'
import { withPause } from './pause.ts'
import type { GraphDetails, GraphState, GraphSummary, GraphTask, RootCause, StreamEvent, Waiting } from './wire.ts'

export interface GraphWatch {
  readonly summary: GraphSummary
  /** In topological order. */
  readonly tasks: readonly GraphTask[]
  /**
   * Changes only with the graph itself, never with the state of its tasks: the drawing is laid out once for each value.
   */
  readonly edges: GraphDetails['edges']
  readonly indexOf: ReadonlyMap<string, number>
  readonly rootCause?: RootCause | undefined
  readonly isTruncated: boolean
  /** Number of the last event seen. */
  readonly seq: number
  /** Whether events are missing. */
  readonly isBehind: boolean
  readonly isRemoved: boolean
}

export function watchOf(detail: GraphDetails, seq: number): GraphWatch {
  const { tasks: given, edges, root_cause, truncated, ...summary } = detail
  const tasks = [...given]
  const indexOf = new Map(tasks.map(({ id }, index) => [id, index]))
  countChildren(tasks, indexOf)
  return {
    summary,
    tasks,
    edges,
    indexOf,
    rootCause: root_cause,
    isTruncated: truncated === true,
    seq,
    isBehind: false,
    isRemoved: false,
  }
}

/** The graph after `events`, in their order. Copies the list of tasks once, however many events there are. */
export function afterEvents(watch: GraphWatch, events: readonly StreamEvent[]): GraphWatch {
  const { indexOf } = watch
  let { summary, rootCause, seq, isBehind, isRemoved } = watch
  const tasks = [...watch.tasks]
  let haveTasksChanged = false
  for (const event of events) {
    if (event.kind === 'reset') {
      const fresh = afterReset(event, watch)
      tasks.splice(0, tasks.length, ...fresh.tasks)
      summary = fresh.summary
      isBehind = fresh.isBehind
      haveTasksChanged = true
    } else if (event.previous !== undefined && event.previous > seq) isBehind = true
    if (event.kind === 'task_waiting') {
      // This event has the number of the event before it.
      const at = indexOf.get(String(event.task_id))
      if (at !== undefined) tasks[at] = waitingTask(tasks[at]!, event)
      continue
    }
    if (event.seq <= seq && event.kind !== 'reset') continue // seen already, before the stream was resumed
    seq = event.seq
    if (event.kind === 'task_changed') {
      const at = indexOf.get(String(event.task_id))
      countChild(tasks, indexOf, at === undefined ? undefined : tasks[at]!.status, event)
      if (at === undefined) {
        if (!watch.isTruncated) isBehind = true
        continue
      }
      if (event.child_count !== undefined && tasks[at]!.child_count === undefined) isBehind = true
      tasks[at] = changedTask(tasks[at]!, event)
      if (watch.isTruncated && lacksEnds(tasks[at])) isBehind = true
      haveTasksChanged = true
    } else if (event.kind === 'graph_paused' || event.kind === 'graph_resumed') {
      summary = withPause(summary, event)
    } else if (event.kind === 'graph_ended') {
      const counts = (event.counts ?? summary.counts) as GraphSummary['counts']
      summary = { ...summary, state: event.state as GraphState, counts, waiting: undefined, finished_at: event.at }
      summary = withPause(summary, event)
    } else if (event.kind === 'tasks_retried') {
      summary = runningAgain(summary)
      rootCause = undefined
    } else if (event.kind === 'graph_changed') {
      summary = withPatch(summary, event)
      isBehind = true
    } else if (event.kind === 'graph_removed') isRemoved = true
  }
  if (haveTasksChanged) summary = { ...summary, ...startOf(summary, tasks) }
  if (haveTasksChanged && !watch.isTruncated) {
    summary = { ...summary, counts: countsOf(tasks), waiting: waitingCounts(tasks) }
    countChildren(tasks, indexOf)
  }
  return { ...watch, summary, tasks, rootCause, seq, isBehind, isRemoved }
}

/** The graph with counts that are newer than those it has. A graph with more tasks than the page has needs them. */
export const withCounts = (watch: GraphWatch, { counts, state, waiting }: GraphSummary): GraphWatch =>
  watch.summary.state === 'running' ? { ...watch, summary: { ...watch.summary, counts, state, waiting } } : watch

/** The graph with data that only `GET /graphs/{id}` has: why it failed, and why tasks wait. */
export function withReasons(watch: GraphWatch, detail: GraphDetails): GraphWatch {
  const waiting = new Map(detail.tasks.map((task) => [task.id, task]))
  const tasks = watch.tasks.map((task) => {
    const fresh = waiting.get(task.id)
    if (fresh?.waiting === undefined || fresh.status !== task.status) return task
    return { ...task, waiting: fresh.waiting }
  })
  const summary = watch.isTruncated ? watch.summary : { ...watch.summary, waiting: waitingCounts(tasks) }
  return { ...watch, summary, tasks, rootCause: detail.root_cause ?? watch.rootCause }
}

/**
 * The state that a `reset` event carries, in place of what the page had. It has no edges: another shape has to be read.
 */
function afterReset(event: StreamEvent, before: GraphWatch): GraphWatch {
  const summary = (event.graph ?? before.summary) as GraphSummary
  const states = (event.tasks ?? []) as StreamEvent[]
  const isSameShape =
    states.length === before.tasks.length && states.every(({ task_id }) => before.indexOf.has(String(task_id)))
  if (!isSameShape) return { ...before, summary, isBehind: true }
  const tasks = [...before.tasks]
  for (const state of states) {
    const at = before.indexOf.get(String(state.task_id))!
    tasks[at] = changedTask(tasks[at]!, state)
  }
  return { ...before, summary, tasks, isBehind: false }
}

/**
 * Moves a child to its new state in the counts of its parent. `before` is its status until now. It is undefined for a child
 * that the page does not have: that child waited or ran.
 */
function countChild(
  tasks: GraphTask[],
  indexOf: ReadonlyMap<string, number>,
  before: GraphTask['status'] | undefined,
  event: StreamEvent,
): void {
  const at = event.parent === undefined ? undefined : indexOf.get(String(event.parent))
  const parent = at === undefined ? undefined : tasks[at]!
  if (parent?.children === undefined) return
  const status = event.status as GraphTask['status']
  const from = before ?? (hasEnded(status) && (parent.children.running ?? 0) > 0 ? 'running' : 'pending')
  tasks[at!] = { ...parent, children: moved(parent.children, from, status) }
}

/**
 * Counts the children of each task whose children the page has, all of them. The answer about a large graph is written in steps:
 * a child in it may be newer than the counts of its parent, and no event makes up for that.
 */
function countChildren(tasks: GraphTask[], indexOf: ReadonlyMap<string, number>): void {
  const childrenOf = new Map<string, GraphTask[]>()
  for (const task of tasks) {
    if (task.parent === undefined) continue
    const some = childrenOf.get(task.parent)
    if (some === undefined) childrenOf.set(task.parent, [task])
    else some.push(task)
  }
  for (const [id, children] of childrenOf) {
    const at = indexOf.get(id)
    if (at === undefined || tasks[at]!.child_count !== children.length) continue
    tasks[at] = { ...tasks[at]!, children: countsOf(children) }
  }
}

/** Whether a task has ended, and the counts of its children do not say that all of them have. */
const lacksEnds = ({ status, child_count, children = {} }: GraphTask): boolean =>
  child_count !== undefined && hasEnded(status) && endedCount(children) < child_count

/** An event has the newest state of a task: a field that it leaves out has gone. */
function changedTask(task: GraphTask, event: StreamEvent): GraphTask {
  const { id, type, tool_name, depends_on, run_if, continue_on_error, reused_from, parent, child_count, children } =
    task
  const status = event.status as GraphTask['status']
  const fields = ['attempt', 'started_at', 'finished_at', 'duration_ms', 'error', 'code'] as const
  const given = Object.fromEntries(fields.flatMap((name) => (event[name] == null ? [] : [[name, event[name]]])))
  const waiting = hasEnded(status) ? undefined : ((event.waiting ?? waitingAs(task, status)) as Waiting | undefined)
  return {
    ...{ id, type, status, ...given },
    ...(tool_name !== undefined && { tool_name }),
    ...(depends_on !== undefined && { depends_on }),
    ...(run_if !== undefined && { run_if }),
    ...(continue_on_error !== undefined && { continue_on_error }),
    ...(parent !== undefined && { parent }),
    ...(child_count !== undefined && { child_count }),
    ...(children !== undefined && { children }),
    ...((event.reused_from ?? reused_from) != null && { reused_from: event.reused_from ?? reused_from }),
    ...(waiting != null && { waiting }),
  } as GraphTask
}

/** Updates why a running task waits at its runtime service. */
function waitingTask(task: GraphTask, event: StreamEvent): GraphTask {
  const { waiting: _, ...rest } = task
  return task.status === 'running' && event.waiting != null ? { ...rest, waiting: event.waiting as Waiting } : rest
}

/** The known reason why the task waits, if its status has not changed. */
const waitingAs = (task: GraphTask, status: GraphTask['status']) => (task.status === status ? task.waiting : undefined)

/** When the first task started, if the page did not know it. */
function startOf(summary: GraphSummary, tasks: readonly GraphTask[]): { started_at?: string } {
  if (summary.started_at !== undefined) return {}
  const starts = tasks.flatMap(({ started_at }) => (started_at === undefined ? [] : [started_at])).sort()
  return starts[0] === undefined ? {} : { started_at: starts[0] }
}
