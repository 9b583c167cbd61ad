/** What a task was promised when it was accepted, and the host has no more: the service was started anew since. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { type Capability, type CapabilitySet, unavailable } from '../intake/capability-set.ts'

/** The first of it, as a sentence with its remedy; undefined when all is there. */
export function lostCapability(
  { effective_sandbox: { profile }, resource_enforcement: { oom_detection, pids_enforced } }: ExecutionPlan,
  { linux_sandbox, memory_cgroup, pids_cgroup }: CapabilitySet,
): string | undefined {
  const promised: readonly [isPromised: boolean, what: string, capability: Capability][] = [
    [profile === 'linux_sandbox', 'sandbox.profile=linux_sandbox', linux_sandbox],
    [oom_detection, 'limits.memory_bytes by a cgroup', memory_cgroup],
    [pids_enforced, 'limits.pids_max', pids_cgroup],
  ]
  for (const [isPromised, what, capability] of promised) {
    if (isPromised && !capability.isAvailable) return unavailable(what, capability)
  }
  return undefined
}
