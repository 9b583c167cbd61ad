/** /metrics for a caller with a tenant: what it has now. It learns nothing of others, of the process or of the data directory. */
import type { MetricsResponse } from '../../shared/contract/control.ts'
import { GRAPH_STATES } from '../../shared/contract/graph-state.ts'
import { TASK_STATUSES, type TaskStatus } from '../../shared/contract/task-status.ts'
import type { Metric } from '../../shared/logs/prometheus.ts'
import type { TenantNumbers } from '../operations/tenant-numbers.ts'

/** Tasks in one of these states, by type. */
const inStates = ({ byType }: TenantNumbers, states: readonly TaskStatus[]): [type: string, count: number][] =>
  [...byType].map(([type, counts]) => [type, sum(states.map((status) => counts[status]))])

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

const tasksIn = (numbers: TenantNumbers, states: readonly TaskStatus[]): number =>
  sum(inStates(numbers, states).map(([, count]) => count))

/** Tasks that have started and not ended. */
const STARTED = ['running', 'cancelling'] as const

export const tenantMetricsJson = (numbers: TenantNumbers): MetricsResponse => ({
  tasks_total: tasksIn(numbers, TASK_STATUSES),
  tasks_running: tasksIn(numbers, STARTED),
  tasks_succeeded: tasksIn(numbers, ['success']),
  tasks_failed: tasksIn(numbers, ['failed']),
  by_type: Object.fromEntries(inStates(numbers, TASK_STATUSES)),
})

/** Names of `CONTROL_METRICS` mean the same here. */
export const TENANT_METRICS: readonly Metric<TenantNumbers>[] = [
  {
    name: 'service_control_tenant_tasks',
    type: 'gauge',
    help: 'Tasks of the tenant that the service keeps, by type and state.',
    labels: { type: 'os, runtime, mcp, cli-skills, or of a custom executor', status: TASK_STATUSES.join(', ') },
    samples: ({ byType }) =>
      [...byType].flatMap(([type, counts]) =>
        Object.entries(counts).map(([status, value]) => ({ labels: { type, status }, value })),
      ),
  },
  {
    name: 'service_control_tenant_graphs',
    type: 'gauge',
    help: 'Graphs of the tenant that the service keeps, by state.',
    labels: { state: GRAPH_STATES.join(', ') },
    samples: ({ graphs }) => Object.entries(graphs).map(([state, value]) => ({ labels: { state }, value })),
  },
  {
    name: 'service_control_tasks_running',
    type: 'gauge',
    help: 'Tasks that have started and not ended, also between two attempts.',
    samples: (numbers) => [{ value: tasksIn(numbers, STARTED) }],
  },
  {
    name: 'service_control_paused',
    type: 'gauge',
    help: 'Paused graphs.',
    labels: { of: 'graph' },
    samples: ({ pausedGraphs }) => [{ labels: { of: 'graph' }, value: pausedGraphs }],
  },
  {
    name: 'service_control_approvals_waiting',
    type: 'gauge',
    help: 'Approvals that wait for an answer.',
    samples: ({ asked }) => [{ value: asked }],
  },
]
