/** Answers of the runtime service about itself: identity, capabilities, settings, reservations. Times are RFC 3339. */
import type { Static } from '@sinclair/typebox'
import { count, flag, maybe, namespaceFlags, oneOf, text, textMap, texts, time } from './answer-schema.ts'
import { fileFaults } from './file-faults.ts'
import { Reservation } from './runtime.ts'
import { CAPABILITY_MODES, NETWORKS } from './runtime-request.ts'
import { RUNTIME_STATUSES } from './runtime-status.ts'
import { Type } from './schema-builder.ts'

/** Version of the capability manifest. */
export const CAPABILITY_SNAPSHOT_VERSION = 'v1'

/** The answer of GET /healthz and GET /readyz. */
export const RuntimeHealth = Type.Object({
  status: oneOf(['ok', 'ready'], 'ok: it lives; ready: it can take tasks.'),
  version: text('Version of the build.'),
  clock: maybe(text('A reading of its clock, for X-Service-Not-After. Absent in /readyz and in older versions.')),
  ...fileFaults,
})
export type RuntimeHealth = Static<typeof RuntimeHealth>

export const Platform = Type.Object({
  os: text('Operating system, such as linux or darwin.'),
  arch: text('Processor architecture, such as x64 or arm64.'),
  containerized: flag('Whether the service runs in a container.'),
  kubernetes: flag('Whether the service runs in Kubernetes.'),
})
export type Platform = Static<typeof Platform>

const identity = {
  runtime_id: text('Name of this runtime.'),
  snapshot_version: Type.Literal(CAPABILITY_SNAPSHOT_VERSION, { description: 'Form of the capability manifest.' }),
}

/** The answer of GET /api/v1/runtime/info. */
export const RuntimeInfo = Type.Object({
  runtime_id: identity.runtime_id,
  version: text('Version of the build.'),
  started_at: time('When the service started.'),
  snapshot_version: identity.snapshot_version,
  platform: Platform,
})
export type RuntimeInfo = Static<typeof RuntimeInfo>

/** Amounts of resources. An amount that the host does not tell is absent. */
export const Capacity = Type.Object(
  {
    task_slots: count('Tasks.'),
    memory_bytes: maybe(count('Bytes of memory.')),
    pids: maybe(count('Processes and threads.')),
  },
  { title: 'Capacity' },
)
export type Capacity = Static<typeof Capacity>

/** The answer of GET /api/v1/runtime/capabilities: the results of the trials at start. */
export const RuntimeCapabilities = Type.Object(
  {
    ...identity,
    collected_at: time('When it was tried.'),
    platform: Platform,
    execution: Type.Object({
      command: flag('Programs can be run.'),
      script: flag('Scripts can be run.'),
      process_group: flag('A task is ended with all processes of its group.'),
    }),
    sandbox: Type.Object({
      process: flag('The profile process: accounting and limits, no isolation.'),
      linux_sandbox: flag('The profile linux_sandbox.'),
      chroot: flag('A root of the task’s own, with linux_sandbox.'),
      rootless: flag('linux_sandbox without being root.'),
      namespaces: namespaceFlags((name) => `Whether ${name} can be its own.`),
    }),
    storage: Type.Object({
      data_dir_writable: flag('The data directory takes files.'),
      file_bundles: maybe(flag('Files can be handed to and from other runtime services. Absent in older versions.')),
    }),
    resources: Type.Object({
      rlimit_cpu: flag('cpu_time_sec holds.'),
      rlimit_memory: flag('memory_bytes holds, as address space.'),
      cgroup_version: count('1 or 2; 0 where there is none that could be used.'),
      cgroup_writable: flag('The service may make cgroups.'),
      memory_limit: flag('memory_bytes holds, in one way or another.'),
      pids_limit: flag('pids_max holds.'),
      oom_detection: flag('An end for want of memory can be told apart.'),
      ledger: flag('What tasks take is reserved.'),
      capacity: Capacity,
    }),
    stable_semantics: texts('What every host does.'),
    enhanced_semantics: texts('What this host does besides.'),
    warnings: texts('What is missing, why, and the remedy.'),
    degraded: flag('Whether there are warnings.'),
    overrides: textMap('What the settings changed.'),
  },
  { title: 'RuntimeCapabilities' },
)
export type RuntimeCapabilities = Static<typeof RuntimeCapabilities>

/** The answer of GET /api/v1/runtime/config: the settings without secrets. */
export const RuntimeConfigSummary = Type.Object({
  runtime_id: identity.runtime_id,
  listen_addr: text('Where it listens.'),
  data_dir: text('Where its files are.'),
  max_running_tasks: count('Tasks that run at a time.'),
  max_queued_tasks: count('Tasks that wait at a time.'),
  termination_grace_ms: count('Milliseconds between TERM and KILL.'),
  result_retention_secs: count('Seconds that an ended task is kept.'),
  gc_interval_ms: count('Milliseconds between two looks for tasks that are kept no longer.'),
  dispatch_poll_interval_ms: count('Milliseconds between two looks for tasks that could start; a safety net.'),
  cgroup_root: text('Where cgroups of tasks are made; empty where none are.'),
  cgroup_enabled: flag('Whether cgroups are used.'),
  default_capability_mode: oneOf(CAPABILITY_MODES, 'For tasks that say nothing.'),
  default_network: oneOf(NETWORKS, 'For tasks in linux_sandbox that say nothing.'),
  egress_allow: maybe(texts('Hosts that tasks with rules may connect to; absent where only their own rules count.')),
  egress_deny: texts('Hosts that no task with rules may connect to.'),
  max_egress_connections: count('Connections that all tasks with rules may have at a time.'),
  own_egress_connections: count('The part of these connections that each of max_running_tasks tasks has for itself.'),
})
export type RuntimeConfigSummary = Static<typeof RuntimeConfigSummary>

export const ActiveReservation = Type.Object({
  task_id: text('Id of the task that holds it.'),
  status: oneOf(RUNTIME_STATUSES, 'Status of that task.'),
  reservation: Reservation,
  reserved_at: time('Since when.'),
})
export type ActiveReservation = Static<typeof ActiveReservation>

/** A tenant without a quota has neither `quota` nor `available`, and is listed while it holds a reservation. */
export const TenantView = Type.Object({
  tenant: text('Name, as in control_context.tenant.'),
  quota: maybe(Capacity),
  reserved: Capacity,
  available: maybe(Capacity),
})
export type TenantView = Static<typeof TenantView>

/** The answer of GET /api/v1/runtime/resources. */
export const ResourcesSnapshot = Type.Object(
  {
    runtime_id: identity.runtime_id,
    capacity: Capacity,
    reserved: Capacity,
    available: Capacity,
    active_reservations: Type.Array(ActiveReservation),
    accepted_waiting_tasks: count('Accepted tasks that hold no reservation.'),
    tenants: Type.Array(TenantView),
  },
  { title: 'ResourcesSnapshot' },
)
export type ResourcesSnapshot = Static<typeof ResourcesSnapshot>
