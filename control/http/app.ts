/** The HTTP face of control: its routes under the rules that all our services share. */
import type { AnyElysia } from 'elysia'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import type { Guard } from '../../shared/http-guard.ts'
import { type HttpServiceOptions, httpService, refuseOtherMethods } from '../../shared/http-service.ts'
import type { Log } from '../../shared/log.ts'
import type { Counters } from '../store/counters.ts'
import { type AdapterRoutes, addAdapterRoutes } from './adapters.ts'
import { addHealthRoutes, type HealthRoutes } from './health.ts'
import { addMcpRoutes, type McpRoutes } from './mcp.ts'
import { addMcpEndpoint, type McpEndpoint } from './mcp-endpoint.ts'
import { addMetricsRoute } from './metrics.ts'
import { addTaskRoutes, type TaskRoutes } from './tasks.ts'

export interface ControlAppOptions extends TaskRoutes, AdapterRoutes, McpRoutes, McpEndpoint, HealthRoutes {
  readonly counters: Counters
  readonly log: Log
  readonly guard: Guard
}

export function controlApp(options: ControlAppOptions): AnyElysia {
  const service: HttpServiceOptions = {
    log: options.log,
    guard: options.guard,
    errorBody: (error): ErrorResponse => ({ error: error.message }),
    maxBodyBytes: options.maxBodyBytes,
    unknownFields: options.intake.unknownFields,
  }
  const app: AnyElysia = httpService(service)
  addTaskRoutes(app, service, options)
  addAdapterRoutes(app, options)
  addMcpRoutes(app, options)
  addMcpEndpoint(app, options)
  addHealthRoutes(app, options)
  addMetricsRoute(app, options.counters, options.scheduler)
  refuseOtherMethods(app)
  return app
}
