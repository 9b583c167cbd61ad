/** /api/v1/runtime/*: identity, capabilities, configuration and reservations of the service. */
import type { AnyElysia } from 'elysia'
import {
  ResourcesSnapshot,
  RuntimeCapabilities,
  RuntimeConfigSummary,
  RuntimeInfo,
} from '../../shared/contract/runtime-info.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import type { ServeConfig } from '../config.ts'
import { placesPerTask } from '../egress/places.ts'

export interface InfoRoutes {
  readonly info: RuntimeInfo
  readonly capabilities: RuntimeCapabilities
  readonly config: RuntimeConfigSummary
  readonly resources: () => ResourcesSnapshot
}

const section = 'The service'

export const addInfoRoutes = (app: AnyElysia, { info, capabilities, config, resources }: InfoRoutes): AnyElysia =>
  app
    .get(
      '/api/v1/runtime/info',
      () => info,
      described({
        section,
        right: 'read',
        summary: 'Read the identity of the service',
        answers: { 200: json(RuntimeInfo, 'Who it is.') },
      }),
    )
    .get(
      '/api/v1/runtime/capabilities',
      () => capabilities,
      described({
        section,
        right: 'read',
        summary: 'Read what the host can do',
        description: 'The results of the trials at the start of the service.',
        answers: { 200: json(RuntimeCapabilities, 'What the host can do.') },
      }),
    )
    .get(
      '/api/v1/runtime/config',
      () => config,
      described({
        section,
        right: 'read',
        isOfService: true,
        summary: 'Read the settings',
        answers: { 200: json(RuntimeConfigSummary, 'The settings that are not secret.') },
      }),
    )
    .get(
      '/api/v1/runtime/resources',
      () => resources(),
      described({
        section,
        right: 'read',
        summary: 'Read capacity and reservations',
        answers: { 200: json(ResourcesSnapshot, 'Capacity, reservations, and the quotas of tenants.') },
      }),
    )

/** The part of the configuration that callers may see. `cgroupRoot` is empty where no cgroup is used. */
export const configSummary = (
  config: ServeConfig,
  { runtimeId, dataDir, cgroupRoot }: Readonly<Record<'runtimeId' | 'dataDir' | 'cgroupRoot', string>>,
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
  default_network: config.defaultNetwork,
  ...(config.egressAllow !== undefined && { egress_allow: config.egressAllow.map(({ text }) => text) }),
  egress_deny: (config.egressDeny ?? []).map(({ text }) => text),
  max_egress_connections: config.maxEgressConnections,
  own_egress_connections: placesPerTask(config.maxEgressConnections, config.maxRunningTasks),
})
