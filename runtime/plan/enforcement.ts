/**
 * Which limits of a task hold, and what enforces them. Pure.
 *
 * - cpu_time_sec: RLIMIT_CPU.
 * - pids_max: a pids cgroup, in any profile. A sandbox that asks for no limit has the default of the service where
 *   there is such a cgroup, and none otherwise.
 * - disk_bytes: the launcher, which counts what is allocated in the workspace.
 * - memory_bytes: in `linux_sandbox` a memory cgroup, which also detects when memory runs out. In `process`, and where
 *   there is no such cgroup, RLIMIT_AS.
 */
import type { PlannedSandbox, ResourceEnforcement } from '../../shared/contract/runtime.ts'
import type { Limits } from '../../shared/request/limits.ts'
import type { CapabilitySet } from './capability-set.ts'
import type { Shortages } from './shortages.ts'

/** Limits of the service for tasks that ask for none. */
export interface DefaultLimits {
  /** The limit of sandboxes that name none. */
  readonly pids_max: number | undefined
  readonly disk_bytes: number | undefined
}

/** Throws what `shortages` throws. */
export function enforcementOf(
  { wall_time_ms, cpu_time_sec, memory_bytes, pids_max, disk_bytes }: Limits,
  { profile }: PlannedSandbox,
  capabilities: CapabilitySet,
  defaults: DefaultLimits,
  shortages: Shortages,
): ResourceEnforcement {
  const cpu_time_enforced =
    cpu_time_sec !== undefined &&
    shortages.has('limits.cpu_time_sec', capabilities.rlimit_cpu, 'CPU time is not limited')
  const memory = memory_bytes === undefined ? 'none' : memoryEnforcement(profile, capabilities, shortages)
  const unaskedPidsMax = profile === 'linux_sandbox' && pids_max === undefined ? defaults.pids_max : undefined
  const pids_enforced =
    pids_max === undefined
      ? unaskedPidsMax !== undefined && capabilities.pids_cgroup.isAvailable
      : shortages.has('limits.pids_max', capabilities.pids_cgroup, 'the number of processes is not limited')
  return {
    wall_time_ms,
    ...(cpu_time_sec !== undefined && { cpu_time_sec }),
    cpu_time_enforced,
    ...(memory_bytes !== undefined && { memory_bytes }),
    memory_enforced: memory !== 'none',
    ...((pids_max ?? unaskedPidsMax) !== undefined && { pids_max: pids_max ?? unaskedPidsMax! }),
    pids_enforced,
    ...((disk_bytes ?? defaults.disk_bytes) !== undefined && { disk_bytes: disk_bytes ?? defaults.disk_bytes! }),
    cgroup_enforced: memory === 'cgroup' || pids_enforced,
    oom_detection: memory === 'cgroup',
  }
}

function memoryEnforcement(
  profile: PlannedSandbox['profile'],
  { memory_cgroup, rlimit_memory }: CapabilitySet,
  shortages: Shortages,
): 'cgroup' | 'address-space' | 'none' {
  if (profile === 'linux_sandbox') {
    const instead = rlimit_memory.isAvailable
      ? 'address space (RLIMIT_AS) is limited instead, and running out of memory is not told apart'
      : 'memory is not limited'
    if (shortages.has('limits.memory_bytes by a cgroup', memory_cgroup, instead)) return 'cgroup'
    return rlimit_memory.isAvailable ? 'address-space' : 'none'
  }
  return shortages.has('limits.memory_bytes', rlimit_memory, 'memory is not limited') ? 'address-space' : 'none'
}
