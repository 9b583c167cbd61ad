/** The HTTP interface of the runtime service: its routes, under the rules that all our services share. */
import type { AnyElysia } from 'elysia'
import { ErrorResponse } from '../../shared/contract/runtime.ts'
import type { Guard } from '../../shared/http/guard.ts'
import type { ServiceInfo } from '../../shared/http/openapi/document.ts'
import { addDescriptionRoutes } from '../../shared/http/openapi/serve.ts'
import { httpService, refuseOtherMethods } from '../../shared/http/service.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import { addBundleRoutes, type BundleRoutes, isOfBundle } from './bundles.ts'
import { errorBody } from './errors.ts'
import { addFileRoutes, type FileRoutes } from './files.ts'
import { addHealthRoutes, type HealthRoutes } from './health.ts'
import { addInfoRoutes, type InfoRoutes } from './info.ts'
import { addLogRoute, type LogRoutes } from './logs.ts'
import { addMetricsRoute, type MetricsSources } from './metrics.ts'
import { addNetworkRoute, type NetworkRoutes } from './network.ts'
import { addTaskRoutes, type TaskRoutes } from './tasks.ts'

const RUNTIME_INFO: ServiceInfo = {
  title: 'taskmill runtime service',
  description: 'Runs single commands and scripts as separate processes, with limits and on request in a sandbox.',
  errorSchema: ErrorResponse,
}

export interface RuntimeAppOptions
  extends TaskRoutes,
    LogRoutes,
    FileRoutes,
    BundleRoutes,
    NetworkRoutes,
    InfoRoutes,
    HealthRoutes,
    Omit<MetricsSources, 'networks'> {
  readonly networks: NetworkRoutes['networks'] & MetricsSources['networks']
  readonly log: Log
  readonly guard: Guard
  readonly unknownFields: UnknownFields
}

export function runtimeApp(options: RuntimeAppOptions): AnyElysia {
  const app: AnyElysia = httpService({ ...options, errorBody, limitsItsBody: isOfBundle })
  addTaskRoutes(app, options)
  addLogRoute(app, options)
  addFileRoutes(app, options)
  addNetworkRoute(app, options)
  addBundleRoutes(app, options)
  addInfoRoutes(app, options)
  addHealthRoutes(app, options)
  addMetricsRoute(app, options)
  addDescriptionRoutes(app, RUNTIME_INFO)
  refuseOtherMethods(app)
  return app
}
