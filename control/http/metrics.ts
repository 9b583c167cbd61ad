/** /metrics: what happened since the service started. */
import type { AnyElysia } from 'elysia'
import type { MetricsResponse } from '../../shared/contract/control.ts'
import type { Counters } from '../store/counters.ts'

export const addMetricsRoute = (app: AnyElysia, counters: Counters): AnyElysia =>
  app.get(
    '/metrics',
    (): MetricsResponse => ({
      tasks_total: counters.tasksTotal,
      tasks_running: counters.tasksRunning,
      tasks_succeeded: counters.ended.success,
      tasks_failed: counters.ended.failed,
      by_type: Object.fromEntries(counters.byType),
    }),
  )
