/**
 * The capabilities of this host, as values for plans and as the manifest for callers.
 *
 * Determined once, at start. A missing capability has a reason and a remedy.
 */
import type { Capacity, Platform, RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { CAPABILITY_SNAPSHOT_VERSION } from '../../shared/contract/runtime-info.ts'
import { NAMESPACES, type Namespace } from '../../shared/contract/runtime-request.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import {
  AVAILABLE,
  type Capability,
  type CapabilitySet,
  missing,
  unavailable,
  WITHOUT_GROUPS,
} from '../plan/capability-set.ts'

/** The capabilities that were tried at start. The others depend on the launcher alone. */
export interface Tried extends Omit<CapabilitySet, 'rlimit_cpu' | 'rlimit_memory'> {
  /** Whether the launcher is the native one, which supports all kernel features. */
  readonly isLauncherNative: boolean
}

export function capabilitySet({ isLauncherNative, ...tried }: Tried): CapabilitySet {
  const limits: Capability = isLauncherNative
    ? AVAILABLE
    : missing(`there is no launcher for ${process.platform}`, 'Run the service on Linux.')
  return { ...tried, rlimit_cpu: limits, rlimit_memory: limits }
}

/** The namespaces of a sandbox whose task names none. */
const USUAL = ['mount', 'pid', 'uts', 'ipc', 'net'] as const satisfies readonly Namespace[]

/** Whether a task gets the default sandbox with nothing missing. */
const hasWholeSandbox = (set: CapabilitySet): boolean =>
  [set.linux_sandbox, set.seccomp, ...USUAL.map((name) => set.namespaces[name])].every(({ isAvailable }) => isAvailable)

export interface ManifestContext {
  readonly runtimeId: string
  readonly collectedAt: number
  readonly platform: Platform
  readonly capacity: Capacity
  readonly isSandboxDisabled: boolean
  readonly isCgroupDisabled: boolean
}

const STABLE = [
  'wall_time_ms: TERM, then KILL after the grace time, for everything the task started',
  'output on disk in full, inline up to a limit',
  'exit code or signal as the process ended, across restarts of the service',
  'reservations of slots, memory and pids; quotas of tenants',
  'kill, events and wait',
]

export function capabilityManifest(set: CapabilitySet, context: ManifestContext): RuntimeCapabilities {
  const has = ({ isAvailable }: Capability): boolean => isAvailable
  const warnings = warningsOf(set)
  return {
    runtime_id: context.runtimeId,
    snapshot_version: CAPABILITY_SNAPSHOT_VERSION,
    collected_at: isoTime(context.collectedAt),
    platform: context.platform,
    execution: { command: true, script: true, process_group: true },
    sandbox: {
      process: true,
      linux_sandbox: hasWholeSandbox(set),
      chroot: has(set.chroot),
      rootless: has(set.rootless),
      namespaces: Object.fromEntries(
        NAMESPACES.map((name) => [name, has(set.namespaces[name])]),
      ) as RuntimeCapabilities['sandbox']['namespaces'],
    },
    // A start has just written the lock and the database.
    storage: { data_dir_writable: true, file_bundles: process.platform === 'linux' },
    resources: {
      rlimit_cpu: has(set.rlimit_cpu),
      rlimit_memory: has(set.rlimit_memory),
      cgroup_version: set.cgroup_version,
      cgroup_writable: has(set.pids_cgroup) || has(set.memory_cgroup),
      memory_limit: has(set.rlimit_memory) || has(set.memory_cgroup),
      pids_limit: has(set.pids_cgroup),
      oom_detection: has(set.memory_cgroup),
      ledger: true,
      capacity: context.capacity,
    },
    stable_semantics: STABLE,
    enhanced_semantics: enhancedOf(set),
    warnings,
    degraded: warnings.length > 0,
    overrides: {
      ...(context.isSandboxDisabled && { linux_sandbox: 'disabled' }),
      ...(context.isCgroupDisabled && { cgroup: 'disabled' }),
    },
  }
}

/** Each capability under its name in requests, the most important first. */
export const namedCapabilities = (set: CapabilitySet): readonly (readonly [name: string, capability: Capability])[] => [
  ['sandbox.profile=linux_sandbox', set.linux_sandbox],
  ...sandboxParts(set),
  ['limits.pids_max', set.pids_cgroup],
  ['limits.memory_bytes by a cgroup', set.memory_cgroup],
  ['limits.memory_bytes as address space', set.rlimit_memory],
  ['limits.cpu_time_sec', set.rlimit_cpu],
]

/** Empty where the profile itself is missing: its own line says enough. */
const sandboxParts = ({ linux_sandbox, namespaces, chroot, seccomp, rootless, own_groups }: CapabilitySet) =>
  linux_sandbox.isAvailable
    ? [
        ...NAMESPACES.map((name) => [`sandbox.namespaces.${name}`, namespaces[name]] as const),
        ['sandbox.chroot', chroot] as const,
        ['the system call filter of linux_sandbox', seccomp] as const,
        ['linux_sandbox without being root', rootless] as const,
        [WITHOUT_GROUPS, own_groups] as const,
      ]
    : []

const warningsOf = (set: CapabilitySet): string[] =>
  namedCapabilities(set).flatMap(([name, capability]) =>
    capability.isAvailable ? [] : [unavailable(name, capability)],
  )

const enhancedOf = (set: CapabilitySet): string[] => [
  ...(hasWholeSandbox(set) ? ['linux_sandbox: a view of the host of its own, read-only, and no rights'] : []),
  ...(set.rlimit_cpu.isAvailable ? ['cpu_time_sec by RLIMIT_CPU'] : []),
  ...(set.rlimit_memory.isAvailable ? ['memory_bytes as address space by RLIMIT_AS'] : []),
  ...(set.pids_cgroup.isAvailable ? ['pids_max by a cgroup'] : []),
  ...(set.memory_cgroup.isAvailable ? ['memory_bytes by a cgroup in linux_sandbox'] : []),
]
