/**
 * /metrics: counts since the start of the service, as JSON, or as text for Prometheus if `Accept` prefers that. A caller with
 * a tenant gets what its tenant has now.
 */
import type { AnyElysia } from 'elysia'
import { MetricsResponse } from '../../shared/contract/control.ts'
import { ADDRESS_CLASSES } from '../../shared/egress/address-class.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { httpTimesOf } from '../../shared/http/service.ts'
import { type HttpTimes, httpTimesMetric } from '../../shared/http/times.ts'
import { TASK_SECONDS } from '../../shared/logs/histogram.ts'
import { processMetrics } from '../../shared/logs/process-metrics.ts'
import {
  type Metric,
  measured,
  OPENMETRICS_TYPE,
  preferredType,
  renderMetrics,
  TEXT_TYPE,
} from '../../shared/logs/prometheus.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import type { OperationParts } from '../operations/parts.ts'
import { tenantNumbers } from '../operations/tenant-numbers.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { scheduleCounts } from '../schedules/schedules.ts'
import type { Counters } from '../task/counters.ts'
import { SERVICE } from '../task/pauses.ts'
import { TENANT_METRICS, tenantMetricsJson } from './tenant-metrics.ts'

const OFFERED = ['application/json', 'text/plain', 'application/openmetrics-text']

export const addMetricsRoute = (app: AnyElysia, counters: Counters, parts: OperationParts): AnyElysia =>
  app.get(
    '/metrics',
    async ({ request, set }) => {
      const type = preferredType(request.headers.get('accept'), OFFERED)
      const isOpenMetrics = type === 'application/openmetrics-text'
      if (type !== 'application/json') set.headers['content-type'] = isOpenMetrics ? OPENMETRICS_TYPE : TEXT_TYPE
      const tenant = callerOf(request)?.grant.tenant
      if (tenant !== undefined) {
        const numbers = await runCooperatively(tenantNumbers(parts.store, tenant))
        if (type === 'application/json') return tenantMetricsJson(numbers)
        return renderMetrics(measured(TENANT_METRICS, numbers), isOpenMetrics)
      }
      if (type === 'application/json') return asJson(counters)
      const httpTimes = httpTimesOf(app)!
      return renderMetrics(measured(CONTROL_METRICS, { ...parts, counters, httpTimes }), isOpenMetrics)
    },
    described({
      section: 'The service',
      right: 'read',
      summary: 'Read metrics',
      description:
        'Counts from the start of the service; for a token with a tenant what that has now. Prometheus text if Accept prefers it.',
      answers: { 200: { ...json(MetricsResponse, 'The metrics.'), otherType: 'text/plain' } },
    }),
  )

const asJson = ({ tasksTotal, tasksRunning, ended, byType }: Counters): MetricsResponse => ({
  tasks_total: tasksTotal,
  tasks_running: tasksRunning,
  tasks_succeeded: ended.success,
  tasks_failed: ended.failed,
  by_type: Object.fromEntries(byType),
})

const refusals = (purpose: string, { refusedByClass }: AddressGuard) =>
  [...refusedByClass].map(([addressClass, value]) => ({ labels: { for: purpose, class: addressClass }, value }))

interface Sources extends OperationParts {
  readonly counters: Counters
  readonly httpTimes: HttpTimes
}

export const CONTROL_METRICS: readonly Metric<Sources>[] = [
  {
    name: 'service_control_tasks_accepted_total',
    type: 'counter',
    help: 'Tasks accepted.',
    samples: ({ counters }) => [{ value: counters.tasksTotal }],
  },
  {
    name: 'service_control_tasks_total',
    type: 'counter',
    help: 'Tasks that ended, by how.',
    labels: { status: 'success, failed, skipped, cancelled' },
    samples: ({ counters }) => Object.entries(counters.ended).map(([status, value]) => ({ labels: { status }, value })),
  },
  {
    name: 'service_control_tasks_by_type_total',
    type: 'counter',
    help: 'Tasks accepted, by type.',
    labels: { type: 'os, runtime, mcp, cli-skills, or of a custom executor' },
    samples: ({ counters }) => [...counters.byType].map(([type, value]) => ({ labels: { type }, value })),
  },
  {
    name: 'service_control_tasks_running',
    type: 'gauge',
    help: 'Tasks that have started and not ended, also between two attempts.',
    samples: ({ counters }) => [{ value: counters.tasksRunning }],
  },
  {
    name: 'service_control_task_duration_seconds',
    type: 'histogram',
    help: 'Seconds from the start of the first attempt of a task to its end.',
    labels: { le: TASK_SECONDS.join(', ') },
    samples: ({ counters }) => counters.taskSeconds.samples(),
  },
  {
    name: 'service_control_queue_length',
    type: 'gauge',
    help: 'Tasks that wait for a slot; at most 1024 are queued.',
    samples: ({ scheduler }) => [{ value: scheduler.queueLength }],
  },
  {
    name: 'service_control_paused',
    type: 'gauge',
    help: 'Pauses: whether the service is paused, paused types of tasks, paused graphs.',
    labels: { of: 'service, type, graph' },
    samples: ({ keeper: { pauses }, store }) => {
      const service = Number(pauses.all.has(SERVICE))
      return [
        { labels: { of: 'service' }, value: service },
        { labels: { of: 'type' }, value: pauses.all.size - service },
        { labels: { of: 'graph' }, value: store.pausedCount },
      ]
    },
  },
  {
    name: 'service_control_approvals_waiting',
    type: 'gauge',
    help: 'Approvals that wait for an answer.',
    samples: ({ scheduler }) => [{ value: scheduler.approvalsWaiting }],
  },
  {
    name: 'service_control_cache_lookups_total',
    type: 'counter',
    help: 'Look-ups of cached outcomes.',
    labels: { outcome: 'hit, miss' },
    samples: ({ scheduler: { cache } }) => [
      { labels: { outcome: 'hit' }, value: cache.hits },
      { labels: { outcome: 'miss' }, value: cache.misses },
    ],
  },
  {
    name: 'service_control_cached_outcomes',
    type: 'gauge',
    help: 'Cached outcomes.',
    samples: ({ scheduler }) => [{ value: scheduler.cache.size }],
  },
  {
    name: 'service_control_event_streams',
    type: 'gauge',
    help: 'Event streams that are open.',
    samples: ({ eventStreams }) => [{ value: eventStreams.openCount }],
  },
  {
    name: 'service_control_events_sent_total',
    type: 'counter',
    help: 'Events sent, over all streams.',
    samples: ({ eventStreams }) => [{ value: eventStreams.sentTotal }],
  },
  {
    name: 'service_control_event_streams_lagging_total',
    type: 'counter',
    help: 'Event streams that were cut: their clients read too slowly.',
    samples: ({ eventStreams }) => [{ value: eventStreams.laggingTotal }],
  },
  {
    name: 'service_control_spans_total',
    type: 'counter',
    help: 'Spans delivered to the collector, and dropped. Only with --otlp-endpoint.',
    labels: { outcome: 'sent, dropped' },
    samples: ({ tracing }) =>
      tracing && Object.entries(tracing.counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  },
  {
    name: 'service_control_spans_waiting',
    type: 'gauge',
    help: 'Spans not delivered yet. Only with --otlp-endpoint.',
    samples: ({ tracing }) => tracing && [{ value: tracing.waitingCount }],
  },
  {
    name: 'service_control_callbacks_total',
    type: 'counter',
    help: 'Callbacks delivered and given up, and failed tries.',
    labels: { outcome: 'delivered, failed, given_up' },
    samples: ({ callbacks }) =>
      Object.entries(callbacks.counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  },
  {
    name: 'service_control_callbacks_waiting',
    type: 'gauge',
    help: 'Callbacks not delivered yet.',
    samples: ({ callbacks }) => [{ value: callbacks.waitingCount }],
  },
  {
    name: 'service_control_schedules',
    type: 'gauge',
    help: 'Schedules.',
    labels: { state: 'active, paused' },
    samples: ({ schedules }) =>
      Object.entries(scheduleCounts(schedules.all)).map(([state, value]) => ({ labels: { state }, value })),
  },
  {
    name: 'service_control_schedule_last_success_timestamp_seconds',
    type: 'gauge',
    help: 'When a graph of the schedule last succeeded, in seconds since 1970. Absent before the first one.',
    labels: { schedule: 'name of the schedule' },
    samples: ({ schedules }) =>
      schedules.all.flatMap(({ name, progress: { last_success } }) =>
        last_success === undefined ? [] : [{ labels: { schedule: name }, value: last_success / 1_000 }],
      ),
  },
  {
    name: 'service_control_schedule_missed_total',
    type: 'counter',
    help: 'Due times of the schedule that passed without a graph.',
    labels: { schedule: 'name of the schedule' },
    samples: ({ schedules }) =>
      schedules.all.map(({ name, progress }) => ({ labels: { schedule: name }, value: progress.missed })),
  },
  {
    name: 'service_control_schedule_skipped_total',
    type: 'counter',
    help: 'Due times of the schedule that were skipped because a graph of it ran.',
    labels: { schedule: 'name of the schedule' },
    samples: ({ schedules }) =>
      schedules.all.map(({ name, progress }) => ({ labels: { schedule: name }, value: progress.skipped })),
  },
  {
    name: 'service_control_runtimes',
    type: 'gauge',
    help: 'Runtime services. Draining ones count as draining, also while they are away.',
    labels: { state: 'ready, away, draining' },
    samples: ({ runtimePool }) =>
      Object.entries(runtimePool.counts).map(([state, value]) => ({ labels: { state }, value })),
  },
  {
    name: 'service_control_runtime_attempts',
    type: 'gauge',
    help: 'Attempts that a runtime service has or may have.',
    labels: { runtime: 'name of the runtime service' },
    samples: ({ runtimePool }) =>
      runtimePool.members.map(({ name }) => ({ labels: { runtime: name }, value: runtimePool.attemptCount(name) })),
  },
  {
    name: 'service_control_addresses_refused_total',
    type: 'counter',
    help: 'Connections refused by --callback-policy and --http-policy, by the class of the address.',
    labels: { for: 'callback, http', class: ADDRESS_CLASSES.filter((one) => one !== 'public').join(', ') },
    samples: ({ addressGuards: { callbacks, http } }) => [
      ...refusals('callback', callbacks),
      ...refusals('http', http),
    ],
  },
  {
    name: 'service_control_replica_lease_seconds',
    type: 'gauge',
    help: 'With a database: seconds that are left of the lease.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.leaseMsLeft / 1_000 }],
  },
  {
    name: 'service_control_replica_turn_duration_seconds',
    type: 'histogram',
    help: 'With a database: how long turns (commits) took.',
    samples: ({ keeper: { replica } }) => replica?.turnSeconds.samples(),
  },
  {
    name: 'service_control_replica_turns_total',
    type: 'counter',
    help: 'With a database: committed turns.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.turnSeconds.count }],
  },
  {
    name: 'service_control_replica_adopted_graphs_total',
    type: 'counter',
    help: 'With a database: adopted graphs.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.adoptedTotal }],
  },
  {
    name: 'service_control_replica_fenced_total',
    type: 'counter',
    help: 'With a database: replicas that this one has declared dead.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.fencedTotal }],
  },
  {
    name: 'service_control_replica_owned_graphs',
    type: 'gauge',
    help: 'With a database: graphs that the replica has in memory.',
    samples: ({ keeper: { replica }, store }) => replica && [{ value: store.graphCount }],
  },
  httpTimesMetric('service_control'),
  ...processMetrics('service_control'),
]
