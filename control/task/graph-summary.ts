/** Summarizes a graph: its state, the number of its tasks in each state, its times. Pure. */

import type { GraphState } from '../../shared/contract/graph-state.ts'
import type { GraphCounts, GraphSummary, WaitingCounts } from '../../shared/contract/graphs.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { shownPause } from '../rules/pause.ts'
import { isAskedApproval } from './approval.ts'
import type { Graph, Task } from './graph.ts'
import { endOfBackoff } from './waiting.ts'

type EndState = Exclude<GraphState, 'running'>

/** The state of an ended graph. Does not count all its tasks. */
export function* endState({ tasks }: Graph): Steps<EndState> {
  let state: EndState = 'success'
  yield* inRanges(tasks.length, (from, to) => {
    if (state !== 'failed') state = endStateWithin(tasks, from, to, state)
  })
  return state
}

/** Combines `state`, that of the tasks before `from`, with the tasks from `from` to `to`. */
export function endStateWithin(
  tasks: readonly Task[],
  from: number,
  to: number,
  state: EndState = 'success',
): EndState {
  let result = state
  for (let i = from; i < to; i++) {
    const task = tasks[i]!
    if (task.isDeleted) continue
    const { status } = task
    if (status !== 'failed' && status !== 'cancelled' && status !== 'skipped') continue
    if (isMeant(task)) continue
    if (status === 'failed') return 'failed'
    result = 'cancelled'
  }
  return result
}

/**
 * Whether the rules of the task allow this end: a failure with `continue_on_error`, a skip because of its `run_if`. The end
 * of a child counts for its parent alone, and that of a task of `on_end` for nothing.
 */
const isMeant = ({ status, continuesOnError, rare, childOf, atEnd }: Task): boolean =>
  (status === 'failed' && continuesOnError) ||
  (status === 'skipped' && rare.skip_standing === 'neutral') ||
  childOf !== undefined ||
  atEnd !== undefined

/** The totals of the tasks that were not deleted. */
export interface GraphTotals {
  readonly taskCount: number
  readonly counts: GraphCounts
  readonly waiting: WaitingCounts
  readonly state: GraphState
  /**
   * Start of the first task without a reused outcome; undefined until then. All times are in milliseconds since 1970.
   */
  readonly startedAt: number | undefined
}

/** `now` is in milliseconds since 1970. */
export function* graphTotals(graph: Graph, now = Date.now()): Steps<GraphTotals> {
  const { tasks } = graph
  const byStatus: { [S in TaskStatus]?: number } = {}
  const meant: GraphCounts = {}
  const waiting: WaitingCounts = {}
  const hasMeant = graph.hasRules || graph.fanOuts !== undefined
  let taskCount = 0
  let startedAt = Number.POSITIVE_INFINITY
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = tasks[i]!
      if (task.isDeleted) continue
      if (hasMeant && isMeant(task)) meant[task.status] = (meant[task.status] ?? 0) + 1
      taskCount++
      byStatus[task.status] = (byStatus[task.status] ?? 0) + 1
      if (task.status === 'pending' && isAskedApproval(task)) waiting.approval = (waiting.approval ?? 0) + 1
      if (task.status === 'running' && task.rare.isBackingOff && endOfBackoff(task, now) !== undefined)
        waiting.backoff = (waiting.backoff ?? 0) + 1
      if (task.startedAt !== undefined && task.startedAt < startedAt && task.rare.reused_from === undefined)
        startedAt = task.startedAt
    }
  })
  const counts: GraphCounts = byStatus
  return {
    ...{
      taskCount,
      counts,
      waiting,
      state: graph.endedAt === undefined ? 'running' : stateOf(counts, meant),
    },
    startedAt: startedAt === Number.POSITIVE_INFINITY ? undefined : startedAt,
  }
}

function stateOf({ failed = 0, cancelled = 0, skipped = 0 }: GraphCounts, meant: GraphCounts): EndState {
  if (failed > (meant.failed ?? 0)) return 'failed'
  return cancelled > (meant.cancelled ?? 0) || skipped > (meant.skipped ?? 0) ? 'cancelled' : 'success'
}

export function* graphSummary(graph: Graph): Steps<GraphSummary> {
  return summaryOf(graph, yield* graphTotals(graph))
}

export function summaryOf(graph: Graph, { taskCount, counts, waiting, state, startedAt }: GraphTotals): GraphSummary {
  const { endedAt, options } = graph
  return {
    graph_id: graph.id,
    ...(options.name !== undefined && { name: options.name }),
    ...(options.labels !== undefined && { labels: { ...options.labels } }),
    ...(graph.isScoped && { scope: 'graph' as const }),
    ...(options.concurrency !== undefined && { concurrency: options.concurrency }),
    state,
    task_count: taskCount,
    counts,
    ...(graph.pause !== undefined && { pause: shownPause(graph.pause) }),
    ...(Object.keys(waiting).length > 0 && { waiting }),
    created_at: isoTime(graph.createdAt),
    ...(startedAt !== undefined && { started_at: isoTime(startedAt) }),
    ...(endedAt !== undefined && { finished_at: isoTime(endedAt) }),
    ...(startedAt !== undefined && endedAt !== undefined && { duration_ms: Math.max(0, endedAt - startedAt) }),
    trace_id: graph.traceId,
    ...(graph.submittedBy !== undefined && { submitted_by: graph.submittedBy }),
    ...(graph.tenant !== undefined && { tenant: graph.tenant }),
    ...(graph.patched !== undefined && { revision: graph.patched.revision }),
    ...(graph.patched?.by !== undefined && { patched_by: [...graph.patched.by] }),
  }
}
