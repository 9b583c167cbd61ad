/** /metrics: what happened since the service started; JSON, or text for Prometheus where `Accept` prefers it. */
import type { AnyElysia } from 'elysia'
import { MetricsResponse } from '../../shared/contract/control.ts'
import { described, json } from '../../shared/openapi/route.ts'
import {
  type MetricFamily,
  OPENMETRICS_TYPE,
  preferredType,
  renderMetrics,
  TEXT_TYPE,
} from '../../shared/prometheus.ts'
import type { OperationParts } from '../operations/parts.ts'
import type { Counters } from '../store/counters.ts'

const OFFERED = ['application/json', 'text/plain', 'application/openmetrics-text']

type MetricParts = Pick<OperationParts, 'scheduler' | 'eventStreams'>

export const addMetricsRoute = (app: AnyElysia, counters: Counters, parts: MetricParts): AnyElysia =>
  app.get(
    '/metrics',
    ({ request, set }) => {
      const type = preferredType(request.headers.get('accept'), OFFERED)
      if (type === 'application/json') return asJson(counters)
      const isOpenMetrics = type === 'application/openmetrics-text'
      set.headers['content-type'] = isOpenMetrics ? OPENMETRICS_TYPE : TEXT_TYPE
      return renderMetrics(families(counters, parts), isOpenMetrics)
    },
    described({
      section: 'The service',
      summary: 'Read metrics',
      description: 'Counts from the start of the service. Prometheus text if Accept prefers it.',
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

const families = (
  { tasksTotal, tasksRunning, ended, byType }: Counters,
  { scheduler, eventStreams }: MetricParts,
): MetricFamily[] => [
  {
    name: 'service_control_tasks_accepted_total',
    type: 'counter',
    help: 'Tasks accepted.',
    samples: [{ value: tasksTotal }],
  },
  {
    name: 'service_control_tasks_total',
    type: 'counter',
    help: 'Tasks that ended, by how.',
    samples: Object.entries(ended).map(([status, value]) => ({ labels: { status }, value })),
  },
  {
    name: 'service_control_tasks_by_type_total',
    type: 'counter',
    help: 'Tasks accepted, by type.',
    samples: [...byType].map(([type, value]) => ({ labels: { type }, value })),
  },
  {
    name: 'service_control_tasks_running',
    type: 'gauge',
    help: 'Tasks that have started and not ended, those between two attempts among them.',
    samples: [{ value: tasksRunning }],
  },
  {
    name: 'service_control_queue_length',
    type: 'gauge',
    help: 'Tasks that could start but for the concurrency limit; at most 1024 are queued.',
    samples: [{ value: scheduler.queueLength }],
  },
  {
    name: 'service_control_event_streams',
    type: 'gauge',
    help: 'Event streams that are open.',
    samples: [{ value: eventStreams.openCount }],
  },
  {
    name: 'service_control_events_sent_total',
    type: 'counter',
    help: 'Events sent, over all streams.',
    samples: [{ value: eventStreams.sentTotal }],
  },
  {
    name: 'service_control_event_streams_lagging_total',
    type: 'counter',
    help: 'Event streams that were cut because their clients read too slowly.',
    samples: [{ value: eventStreams.laggingTotal }],
  },
]
