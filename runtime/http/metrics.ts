/** /metrics: counters since the service started, and present reservations, as text for Prometheus. */
import type { AnyElysia } from 'elysia'
import { TASK_ERROR_CODES } from '../../shared/contract/runtime.ts'
import type { Capacity, ResourcesSnapshot } from '../../shared/contract/runtime-info.ts'
import { described, other } from '../../shared/http/openapi/route.ts'
import { httpTimesOf } from '../../shared/http/service.ts'
import { type HttpTimes, httpTimesMetric } from '../../shared/http/times.ts'
import { TASK_SECONDS } from '../../shared/logs/histogram.ts'
import { processMetrics } from '../../shared/logs/process-metrics.ts'
import { type Metric, measured, OPENMETRICS_TYPE, preferredType, renderMetrics } from '../../shared/logs/prometheus.ts'
import type { EgressTotals } from '../egress/egress.ts'
import { DURATION_BOUNDS_MS, type Totals } from '../tasks/totals.ts'

/** Without parameters, as the specification demands. */
const TEXT = 'text/plain; version=0.0.4'

export interface MetricsSources {
  readonly totals: Totals
  readonly networks: { readonly totals: EgressTotals }
  readonly resources: () => ResourcesSnapshot
}

export const addMetricsRoute = (app: AnyElysia, { totals, networks, resources }: MetricsSources): AnyElysia =>
  app.get(
    '/metrics',
    ({ request, set }) => {
      const preferred = preferredType(request.headers.get('accept'), ['text/plain', 'application/openmetrics-text'])
      const isOpenMetrics = preferred === 'application/openmetrics-text'
      set.headers['content-type'] = isOpenMetrics ? OPENMETRICS_TYPE : TEXT
      return renderMetrics(
        measured(RUNTIME_METRICS, {
          ...{ totals, network: networks.totals, resources: resources() },
          httpTimes: httpTimesOf(app)!,
        }),
        isOpenMetrics,
      )
    },
    described({
      section: 'The service',
      right: 'read',
      isOfService: true,
      summary: 'Read metrics',
      description: 'Prometheus text. Counts from the start of the service.',
      answers: { 200: other('text/plain', 'The metrics.') },
    }),
  )

/** The sources of the metrics. */
interface Measured {
  readonly totals: Totals
  readonly network: EgressTotals
  readonly resources: ResourcesSnapshot
  readonly httpTimes: HttpTimes
}

const UNITS: Readonly<Record<keyof Capacity, string>> = {
  task_slots: 'places for running tasks',
  memory_bytes: 'bytes of memory',
  pids: 'processes and threads',
}

/** A gauge for each unit of capacity. */
const amounts = (what: 'capacity' | 'reserved' | 'available', help: string): Metric<Measured>[] =>
  (Object.keys(UNITS) as (keyof Capacity)[]).map((unit) => ({
    name: `service_runtime_${what}_${unit}`,
    type: 'gauge',
    help: `${help}: ${UNITS[unit]}.`,
    samples: ({ resources }) => {
      const value = resources[what][unit]
      return value === undefined ? undefined : [{ value }]
    },
  }))

export const RUNTIME_METRICS: readonly Metric<Measured>[] = [
  {
    name: 'service_runtime_tasks_total',
    type: 'counter',
    help: 'Tasks that reached a status.',
    labels: { status: 'accepted, running, success, failed, cancelled' },
    samples: ({ totals }) => Object.entries(totals.byStatus).map(([status, value]) => ({ labels: { status }, value })),
  },
  {
    name: 'service_runtime_tasks_running',
    type: 'gauge',
    help: 'Tasks that are launched or run.',
    samples: ({ resources }) => [{ value: resources.active_reservations.length }],
  },
  {
    name: 'service_runtime_task_errors_total',
    type: 'counter',
    help: 'Tasks that did not succeed, by error code.',
    labels: { code: TASK_ERROR_CODES.join(', ') },
    samples: ({ totals }) => [...totals.errorsByCode].map(([code, value]) => ({ labels: { code }, value })),
  },
  {
    name: 'service_runtime_task_duration_ms',
    type: 'histogram',
    help: 'Milliseconds from the start of a task to its end. Queries use service_runtime_task_duration_seconds.',
    labels: { le: DURATION_BOUNDS_MS.join(', ') },
    samples: ({ totals }) => totals.durationsMs.samples(),
  },
  {
    name: 'service_runtime_task_duration_seconds',
    type: 'histogram',
    help: 'Seconds from the start of a task to its end.',
    labels: { le: TASK_SECONDS.join(', ') },
    samples: ({ totals }) => totals.durations.samples(),
  },
  {
    name: 'service_runtime_queue_length',
    type: 'gauge',
    help: 'Accepted tasks that wait.',
    samples: ({ resources }) => [{ value: resources.accepted_waiting_tasks }],
  },
  {
    name: 'service_runtime_network_connections_total',
    type: 'counter',
    help: 'Ended connections of tasks whose network has rules. failed: allowed, but not made.',
    labels: { verdict: 'allowed, failed, refused' },
    samples: ({ network: { allowed, failed, refused } }) =>
      Object.entries({ allowed, failed, refused }).map(([verdict, value]) => ({ labels: { verdict }, value })),
  },
  {
    name: 'service_runtime_network_connections_open',
    type: 'gauge',
    help: 'Connections of these tasks that are being made or open.',
    samples: ({ network }) => [{ value: network.open }],
  },
  {
    name: 'service_runtime_network_bytes_total',
    type: 'counter',
    help: 'Bytes of ended connections of these tasks.',
    labels: { direction: 'sent, received' },
    samples: ({ network: { bytesSent: sent, bytesReceived: received } }) =>
      Object.entries({ sent, received }).map(([direction, value]) => ({ labels: { direction }, value })),
  },
  ...amounts('capacity', 'Capacity'),
  ...amounts('reserved', 'Reserved by running tasks'),
  ...amounts('available', 'Available'),
  httpTimesMetric('service_runtime'),
  // All names begin alike, as the specification demands.
  ...processMetrics('service_runtime', 'service_runtime_process'),
]
