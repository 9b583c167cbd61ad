/** What the operations stand on: parts of the service and settings. */
import type { Toolset } from '../../shared/contract/toolsets.ts'
import type { Caller } from '../../shared/http/callers.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import type { OfferedSkill } from '../adapter-v1/manifest.ts'
import type { Callbacks } from '../callbacks/callbacks.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import type { RuntimePool } from '../executors/runtime/pool.ts'
import type { AuditLog } from '../log/audit-log.ts'
import type { Keeper } from '../log/keeper.ts'
import type { McpServers } from '../mcp-client/servers.ts'
import type { AddressGuards } from '../outbound/address-guard.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { ScheduleFiles } from '../schedules/schedule-files.ts'
import type { Schedules } from '../schedules/schedules.ts'
import type { Retention } from '../task/retention.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { Tracing } from '../tracing/tracing.ts'
import type { CallerQuotas } from './caller-quotas.ts'

export interface Ground {
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly executors: ExecutorRegistry
  readonly mcpServers: McpServers
  readonly runtimePool: RuntimePool
  readonly keeper: Keeper
  readonly retention: Retention
  readonly callbacks: Callbacks
  readonly schedules: Schedules
  readonly scheduleFiles: ScheduleFiles
  readonly quotas: CallerQuotas
  /** Whose name it is; undefined for one that nobody has any more. */
  readonly callerNamed: (name: string) => Caller | undefined
  /** Undefined without an audit log. */
  readonly audit?: AuditLog | undefined
  readonly addressGuards: AddressGuards
  /** Undefined if no traces are made. */
  readonly tracing: Tracing | undefined
  /** The current skills. */
  readonly listSkills: () => Promise<readonly OfferedSkill[]>
  /** What is wrong with the rules of the secrets; undefined if nothing is. */
  readonly secretsFault: () => string | undefined
  readonly unknownFields: UnknownFields
  /** Sets of MCP tools for callers that choose none. */
  readonly mcpToolsets: readonly Toolset[]
  /** Maximum bytes of a submitted graph. */
  readonly maxBodyBytes: number
  /** Children that a task with `for_each` may have. */
  readonly maxFanOut: number
  /** Bytes of results and resolved inputs that a graph may store. */
  readonly maxGraphResultBytes: number
  /** Fires when the service stops: callers that wait are answered then. */
  readonly stopping: AbortSignal
  readonly log: Log
}
