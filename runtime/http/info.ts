/** /api/v1/runtime/*: identity, capabilities, configuration and reservations of the service. */
import type { AnyElysia } from 'elysia'
import type {
  ResourcesSnapshot,
  RuntimeCapabilities,
  RuntimeConfigSummary,
  RuntimeInfo,
} from '../../shared/contract/runtime-info.ts'
import type { ServeConfig } from '../config.ts'

export interface InfoRoutes {
  readonly info: RuntimeInfo
  readonly capabilities: RuntimeCapabilities
  readonly config: RuntimeConfigSummary
  readonly resources: () => ResourcesSnapshot
}

export const addInfoRoutes = (app: AnyElysia, { info, capabilities, config, resources }: InfoRoutes): AnyElysia =>
  app
    .get('/api/v1/runtime/info', () => info)
    .get('/api/v1/runtime/capabilities', () => capabilities)
    .get('/api/v1/runtime/config', () => config)
    .get('/api/v1/runtime/resources', () => resources())

export interface SummaryContext {
  readonly runtimeId: string
  /** Absolute. */
  readonly dataDir: string
  /** Empty where no cgroup is used. */
  readonly cgroupRoot: string
}

/** The part of the configuration that callers may see. */
export const configSummary = (
  config: ServeConfig,
  { runtimeId, dataDir, cgroupRoot }: SummaryContext,
): RuntimeConfigSummary => ({
  runtime_id: runtimeId,
  listen_addr: config.listenAddr,
  data_dir: dataDir,
  max_running_tasks: config.maxRunningTasks,
  max_queued_tasks: config.maxQueuedTasks,
  termination_grace_ms: config.terminationGraceMs,
  result_retention_secs: config.resultRetentionSecs,
  gc_interval_ms: config.gcIntervalMs,
  dispatch_poll_interval_ms: config.dispatchPollIntervalMs,
  cgroup_root: cgroupRoot,
  cgroup_enabled: cgroupRoot !== '',
  default_capability_mode: config.defaultCapabilityMode,
})
