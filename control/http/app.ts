/** The HTTP interface of control: its routes, with the rules that all services share. */
import type { AnyElysia } from 'elysia'
import { ErrorResponse } from '../../shared/contract/control.ts'
import type { Guard } from '../../shared/http/guard.ts'
import type { KnownTokens } from '../../shared/http/known-tokens.ts'
import type { ServiceInfo } from '../../shared/http/openapi/document.ts'
import { addDescriptionRoutes } from '../../shared/http/openapi/serve.ts'
import { httpService, refuseOtherMethods } from '../../shared/http/service.ts'
import type { Sessions } from '../../shared/http/sessions.ts'
import type { OperationParts } from '../operations/parts.ts'
import { partsFor } from '../operations/tenant-view.ts'
import type { Counters } from '../task/counters.ts'
import { addAdapterRoutes } from './adapters.ts'
import { addApprovalRoutes } from './approvals.ts'
import { addAuditRoutes, RequestAudit } from './audit.ts'
import { addDashboardRoutes } from './dashboard.ts'
import { addEventRoutes } from './events.ts'
import { addFileRoutes } from './files.ts'
import { addForwarding } from './forwarding.ts'
import { addGraphRoutes } from './graphs.ts'
import { addHealthRoutes } from './health.ts'
import { addLogRoutes } from './logs.ts'
import { addMcpRoutes } from './mcp.ts'
import { addMcpEndpoint } from './mcp-endpoint.ts'
import { addMetricsRoute } from './metrics.ts'
import { addNetworkRoutes } from './network.ts'
import { addPauseRoutes } from './pauses.ts'
import { addReplicaRoutes } from './replicas.ts'
import { addRuntimeRoutes } from './runtimes.ts'
import { addScheduleRoutes } from './schedules.ts'
import { addSessionRoutes } from './session.ts'
import { addSignalRoutes } from './signals.ts'
import type { StreamLimits } from './stream-limits.ts'
import { addTaskRoutes } from './tasks.ts'

const CONTROL_INFO: ServiceInfo = {
  title: 'taskmill control service',
  description: 'Accepts graphs of tasks, runs them, retries them, and remembers how they ended.',
  errorSchema: ErrorResponse,
}

export interface ControlAppOptions {
  readonly parts: OperationParts
  readonly counters: Counters
  readonly guard: Guard
  /** Undefined without --tokens-file. */
  readonly tokens?: Pick<KnownTokens, 'fault'> | undefined
  /** Undefined if callers need no token. */
  readonly sessions?: Sessions | undefined
  readonly streamLimits: StreamLimits
  /** `performance.now()` at start. */
  readonly startedAt: number
}

export function controlApp(options: ControlAppOptions): AnyElysia {
  const { parts, counters, guard, tokens, sessions, streamLimits, startedAt } = options
  const { log, maxBodyBytes, unknownFields } = parts
  const errorBody = (error: Error): ErrorResponse => ({ error: error.message })
  const audit = parts.audit && new RequestAudit(parts.audit)
  const app: AnyElysia = httpService({ log, guard, errorBody, maxBodyBytes, unknownFields, onRouted: audit?.begin })
  audit?.follow(app)
  const seen = partsFor(parts)
  const isReplica = parts.keeper.replica !== undefined
  if (isReplica) addForwarding(app, parts, seen) // before the routes that it is for
  addTaskRoutes(app, seen)
  addApprovalRoutes(app, seen)
  addSignalRoutes(app, seen)
  addGraphRoutes(app, seen)
  addPauseRoutes(app, parts, seen)
  addLogRoutes(app, seen, streamLimits)
  addNetworkRoutes(app, seen)
  addFileRoutes(app, seen, streamLimits)
  addEventRoutes(app, parts, seen, streamLimits)
  addAdapterRoutes(app, seen)
  addMcpRoutes(app, seen)
  addMcpEndpoint(app, parts, seen)
  addHealthRoutes(app, parts, { startedAt, tokens })
  addAuditRoutes(app, parts, streamLimits)
  addMetricsRoute(app, counters, parts)
  addRuntimeRoutes(app, parts)
  addScheduleRoutes(app, parts)
  addSessionRoutes(app, parts, { sessions, audit })
  if (isReplica) addReplicaRoutes(app, parts, seen, streamLimits)
  addDashboardRoutes(app)
  addDescriptionRoutes(app, CONTROL_INFO)
  refuseOtherMethods(app)
  return app
}
