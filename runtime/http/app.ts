/** The HTTP interface of the runtime service: its routes, under the rules that all our services share. */
import type { AnyElysia } from 'elysia'
import type { Guard } from '../../shared/http-guard.ts'
import { httpService, refuseOtherMethods } from '../../shared/http-service.ts'
import type { Log } from '../../shared/log.ts'
import type { UnknownFields } from '../../shared/unknown-names.ts'
import { errorBody } from './errors.ts'
import { addHealthRoutes, type HealthRoutes } from './health.ts'
import { addInfoRoutes, type InfoRoutes } from './info.ts'
import { addMetricsRoute, type MetricsSources } from './metrics.ts'
import { addTaskRoutes, type TaskRoutes } from './tasks.ts'

export interface RuntimeAppOptions extends TaskRoutes, InfoRoutes, HealthRoutes, MetricsSources {
  readonly log: Log
  readonly guard: Guard
  readonly unknownFields: UnknownFields
}

export function runtimeApp(options: RuntimeAppOptions): AnyElysia {
  const app: AnyElysia = httpService({ ...options, errorBody })
  addTaskRoutes(app, options)
  addInfoRoutes(app, options)
  addHealthRoutes(app, options)
  addMetricsRoute(app, options)
  refuseOtherMethods(app)
  return app
}
