/**
 * Capabilities that a task was promised when it was accepted, and that the host lost before a restart of the service.
 * Pure.
 */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { Limits } from '../../shared/request/limits.ts'
import { type Capability, type CapabilitySet, unavailable } from '../plan/capability-set.ts'

/** The first lost capability, as a sentence with its remedy. Undefined when nothing is lost. */
export function lostCapability(
  { effective_sandbox: { profile }, resource_enforcement: { oom_detection, pids_enforced } }: ExecutionPlan,
  { pids_max }: Limits,
  { linux_sandbox, memory_cgroup, pids_cgroup }: CapabilitySet,
): string | undefined {
  const promised: readonly [isPromised: boolean, what: string, capability: Capability][] = [
    [profile === 'linux_sandbox', 'sandbox.profile=linux_sandbox', linux_sandbox],
    [oom_detection, 'limits.memory_bytes by a cgroup', memory_cgroup],
    [pids_enforced && pids_max !== undefined, 'limits.pids_max', pids_cgroup],
  ]
  for (const [isPromised, what, capability] of promised) {
    if (isPromised && !capability.isAvailable) return unavailable(what, capability)
  }
  return undefined
}

/** The plan without a lost default: a limit on processes that the task did not ask for is no reason to fail it. */
export function planWithoutLostDefault(
  plan: ExecutionPlan,
  { pids_max }: Limits,
  { pids_cgroup }: CapabilitySet,
): ExecutionPlan {
  const { resource_enforcement } = plan
  if (!resource_enforcement.pids_enforced || pids_max !== undefined || pids_cgroup.isAvailable) return plan
  const cgroup_enforced = resource_enforcement.oom_detection
  return { ...plan, resource_enforcement: { ...resource_enforcement, pids_enforced: false, cgroup_enforced } }
}
