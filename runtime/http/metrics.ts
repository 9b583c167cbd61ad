/** /metrics: counters since the service started, and present reservations, as text for Prometheus. */
import type { AnyElysia } from 'elysia'
import type { Capacity, ResourcesSnapshot } from '../../shared/contract/runtime-info.ts'
import { described, other } from '../../shared/openapi/route.ts'
import {
  histogramSamples,
  type MetricFamily,
  OPENMETRICS_TYPE,
  preferredType,
  renderMetrics,
} from '../../shared/prometheus.ts'
import { DURATION_BOUNDS_MS, type Totals } from '../dispatch/totals.ts'

/** Without parameters, as the specification demands. */
const TEXT = 'text/plain; version=0.0.4'

export interface MetricsSources {
  readonly totals: Totals
  readonly resources: () => ResourcesSnapshot
}

export const addMetricsRoute = (app: AnyElysia, sources: MetricsSources): AnyElysia =>
  app.get(
    '/metrics',
    ({ request, set }) => {
      const preferred = preferredType(request.headers.get('accept'), ['text/plain', 'application/openmetrics-text'])
      const isOpenMetrics = preferred === 'application/openmetrics-text'
      set.headers['content-type'] = isOpenMetrics ? OPENMETRICS_TYPE : TEXT
      return renderMetrics(families(sources), isOpenMetrics)
    },
    described({
      section: 'The service',
      summary: 'Read metrics',
      description: 'Prometheus text. Counts from the start of the service.',
      answers: { 200: other('text/plain', 'The metrics.') },
    }),
  )

function families({ totals, resources }: MetricsSources): MetricFamily[] {
  const { capacity, reserved, available, active_reservations, accepted_waiting_tasks } = resources()
  return [
    {
      name: 'service_runtime_tasks_total',
      type: 'counter',
      help: 'Tasks that came to be in a status.',
      samples: Object.entries(totals.byStatus).map(([status, value]) => ({ labels: { status }, value })),
    },
    gauge('service_runtime_tasks_running', 'Tasks that are launched or run.', active_reservations.length),
    {
      name: 'service_runtime_task_errors_total',
      type: 'counter',
      help: 'Tasks that did not succeed, by the code of their error.',
      samples: [...totals.errorsByCode].map(([code, value]) => ({ labels: { code }, value })),
    },
    {
      name: 'service_runtime_task_duration_ms',
      type: 'histogram',
      help: 'Milliseconds from the start of a task to its end.',
      samples: histogramSamples(DURATION_BOUNDS_MS, totals.durations, totals.durationSumMs),
    },
    gauge('service_runtime_queue_length', 'Accepted tasks that wait for their place.', accepted_waiting_tasks),
    ...counters('capacity', 'What there is', capacity),
    ...counters('reserved', 'What running tasks have reserved', reserved),
    ...counters('available', 'What is left', available),
  ]
}

const gauge = (name: string, help: string, value: number): MetricFamily => ({
  name,
  type: 'gauge',
  help,
  samples: [{ value }],
})

const UNITS: Readonly<Record<keyof Capacity, string>> = {
  task_slots: 'places for running tasks',
  memory_bytes: 'bytes of memory',
  pids: 'processes and threads',
}

const counters = (what: string, help: string, amounts: Capacity): MetricFamily[] =>
  (Object.keys(UNITS) as (keyof Capacity)[]).flatMap((unit) => {
    const value = amounts[unit]
    return value === undefined ? [] : [gauge(`service_runtime_${what}_${unit}`, `${help}: ${UNITS[unit]}.`, value)]
  })
