/** What a task of `on_end` is told of its graph by `{"$graph": pointer}`, once all others have ended. Pure. */
import type { GraphSummary, RootCause } from '../../shared/contract/graphs.ts'
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Graph } from './graph.ts'
import { endState, graphTotals, summaryOf } from './graph-summary.ts'
import { commandsAfterFailure, firstFailure, remedyOf } from './root-cause.ts'

export type GraphOutcome = GraphSummary & { readonly root_cause?: Omit<RootCause, 'tail' | 'skipped'> }

/** As in the list of graphs, with the root cause as in the answer about a graph. The tasks of `on_end` do not count. */
export function* graphOutcome(graph: Graph): Steps<GraphOutcome> {
  const totals = yield* graphTotals(graph)
  const counts = { ...totals.counts }
  for (const { status, isDeleted } of graph.atEnd ?? []) if (!isDeleted && !--counts[status]!) delete counts[status]
  let endedAt = totals.startedAt ?? graph.createdAt
  let taskCount = 0
  for (const [i, task] of graph.tasks.entries()) {
    if (isYieldDue(i)) yield
    if (task.atEnd !== undefined || task.isDeleted) continue
    taskCount++
    endedAt = Math.max(endedAt, task.finishedAt ?? 0)
  }
  const failed = yield* firstFailure(graph.tasks)
  return {
    ...summaryOf(graph, { ...totals, counts, taskCount, state: yield* endState(graph) }),
    finished_at: isoTime(endedAt),
    duration_ms: endedAt - (totals.startedAt ?? endedAt),
    ...(failed !== undefined && {
      root_cause: {
        task_id: failed.id,
        error: failed.rare.error ?? '',
        ...(failed.rare.failure !== undefined && { code: failed.rare.failure.code }),
        ...remedyOf(failed),
        try_next: commandsAfterFailure(failed),
      },
    }),
  }
}
