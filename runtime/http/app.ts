/** The HTTP interface of the runtime service: its routes, under the rules that all our services share. */
import type { AnyElysia } from 'elysia'
import type { ServiceError } from '../../shared/contract/errors.ts'
import { ErrorResponse, type RefusalCode } from '../../shared/contract/runtime.ts'
import type { Guard } from '../../shared/http/guard.ts'
import type { ServiceInfo } from '../../shared/http/openapi/document.ts'
import { addDescriptionRoutes } from '../../shared/http/openapi/serve.ts'
import { httpService, refuseOtherMethods } from '../../shared/http/service.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import { Refusal } from '../refusal.ts'
import { addBundleRoutes, type BundleRoutes, isOfBundle } from './bundles.ts'
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

/** Codes of the errors that every service has, by HTTP status. */
const CODES: Readonly<Record<number, RefusalCode>> = {
  400: 'invalid_input',
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  416: 'invalid_input',
  503: 'unavailable',
}

/** `{error: {code, message, details}}`. Source: contract, Runtime service. */
function errorBody(error: ServiceError): ErrorResponse {
  return {
    error: {
      code: error instanceof Refusal ? error.code : (CODES[error.status] ?? 'internal'),
      message: error.message,
      details: error instanceof Refusal ? error.details : null,
    },
  }
}
