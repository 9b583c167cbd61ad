/** What a tenant has now: its tasks and its graphs in this replica, counted when somebody asks. */
import { GRAPH_STATES, type GraphState } from '../../shared/contract/graph-state.ts'
import { TASK_STATUSES, type TaskStatus } from '../../shared/contract/task-status.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { graphTotals } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/task-store.ts'

export interface TenantNumbers {
  /** Tasks that were not deleted, by type. */
  readonly byType: ReadonlyMap<string, Record<TaskStatus, number>>
  readonly graphs: Record<GraphState, number>
  readonly pausedGraphs: number
  /** Approvals that wait for an answer. */
  readonly asked: number
}

const none = <K extends string>(keys: readonly K[]) =>
  Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>

/** Graphs that are accepted meanwhile are left out: a tenant cannot make the look at its graphs endless. */
export function* tenantNumbers(store: Pick<TaskStore, 'graphs' | 'seq'>, tenant: string): Steps<TenantNumbers> {
  const byType = new Map<string, Record<TaskStatus, number>>()
  const graphs = none(GRAPH_STATES)
  let [pausedGraphs, asked, steps] = [0, 0, 0]
  const until = store.seq
  for (const graph of store.graphs) {
    if (isYieldDue(steps++)) yield
    if (graph.acceptedSeq > until) break
    if (graph.tenant !== tenant || graph.isRetired || graph.visible === 0) continue
    const { tasks, pause } = graph
    yield* inRanges(tasks.length, (from, to) => {
      for (let i = from; i < to; i++) {
        const { type, status, isDeleted } = tasks[i]!
        if (isDeleted) continue
        const counts = byType.get(type) ?? none(TASK_STATUSES)
        counts[status]++
        byType.set(type, counts)
      }
    })
    const { state, waiting } = yield* graphTotals(graph)
    graphs[state]++
    if (pause !== undefined) pausedGraphs++
    asked += waiting.approval ?? 0
  }
  return { byType, graphs, pausedGraphs, asked }
}
