/**
 * What this host can enforce: as values for plans, and as the manifest that callers read.
 *
 * The set is found out once, at start. What is missing says why, and what somebody could do about it.
 */
import type { Capacity, Platform, RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { CAPABILITY_SNAPSHOT_VERSION } from '../../shared/contract/runtime-info.ts'
import { NAMESPACES, type Namespace } from '../../shared/contract/runtime-request.ts'
import { isoTime } from '../../shared/iso-time.ts'
import {
  AVAILABLE,
  type Capability,
  type CapabilitySet,
  type Missing,
  missing,
  unavailable,
} from '../intake/capability-set.ts'

/** What was tried at start. */
export interface Tried extends Pick<CapabilitySet, 'cgroup_version' | 'pids_cgroup' | 'memory_cgroup'> {
  /** Whether the launcher is the compiled one, which can do all that the kernel can. */
  readonly isLauncherNative: boolean
  readonly isRoot: boolean
  readonly isSandboxDisabled: boolean
}

const DISABLED = missing('--disable-linux-sandbox is set', 'Start the service without that flag.')
const NOT_BUILT = missing(
  'this version of taskmill-runtime has the profile process alone',
  'Use sandbox.profile=process, and run the service itself in a container or a virtual machine.',
)

export function capabilitySet(tried: Tried): CapabilitySet {
  const sandbox: Missing = tried.isSandboxDisabled ? DISABLED : NOT_BUILT
  const limits: Capability = tried.isLauncherNative
    ? AVAILABLE
    : missing(`there is no launcher for ${process.platform}`, 'Run the service on Linux.')
  return {
    isRoot: tried.isRoot,
    linux_sandbox: sandbox,
    namespaces: Object.fromEntries(NAMESPACES.map((name) => [name, sandbox])) as unknown as Record<
      Namespace,
      Capability
    >,
    chroot: sandbox,
    rootless: sandbox,
    cgroup_version: tried.cgroup_version,
    memory_cgroup: tried.memory_cgroup,
    pids_cgroup: tried.pids_cgroup,
    rlimit_cpu: limits,
    rlimit_memory: limits,
  }
}

export interface ManifestContext {
  readonly runtimeId: string
  readonly collectedAt: number
  readonly platform: Platform
  readonly capacity: Capacity
  readonly isDataDirWritable: boolean
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
      linux_sandbox: has(set.linux_sandbox),
      chroot: has(set.chroot),
      rootless: has(set.rootless),
      namespaces: Object.fromEntries(
        NAMESPACES.map((name) => [name, has(set.namespaces[name])]),
      ) as RuntimeCapabilities['sandbox']['namespaces'],
    },
    storage: { data_dir_writable: context.isDataDirWritable },
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

/** Each capability with the name that requests have for it, in the order in which people care. */
export const namedCapabilities = (set: CapabilitySet): readonly (readonly [name: string, capability: Capability])[] => [
  ['sandbox.profile=linux_sandbox', set.linux_sandbox],
  ['limits.pids_max', set.pids_cgroup],
  ['limits.memory_bytes by a cgroup', set.memory_cgroup],
  ['limits.memory_bytes as address space', set.rlimit_memory],
  ['limits.cpu_time_sec', set.rlimit_cpu],
]

const warningsOf = (set: CapabilitySet): string[] =>
  namedCapabilities(set).flatMap(([name, capability]) =>
    capability.isAvailable ? [] : [unavailable(name, capability)],
  )

const enhancedOf = (set: CapabilitySet): string[] => [
  ...(set.rlimit_cpu.isAvailable ? ['cpu_time_sec by RLIMIT_CPU'] : []),
  ...(set.rlimit_memory.isAvailable ? ['memory_bytes as address space by RLIMIT_AS'] : []),
  ...(set.pids_cgroup.isAvailable ? ['pids_max by a cgroup'] : []),
  ...(set.memory_cgroup.isAvailable ? ['memory_bytes by a cgroup in linux_sandbox'] : []),
]
