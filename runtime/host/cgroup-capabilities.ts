/** The capabilities of the cgroups of a service, as values for plans. */
import { AVAILABLE, type Capability, type CapabilitySet, missing } from '../plan/capability-set.ts'
import type { Controller } from './cgroup-files.ts'
import type { TaskCgroups } from './task-cgroups.ts'

const DISABLED = missing('--disable-cgroup is set', 'Start the service without that flag.')

/** `cgroups` is undefined where they are disabled. */
export function cgroupCapabilities(
  cgroups: TaskCgroups | undefined,
): Pick<CapabilitySet, 'cgroup_version' | 'pids_cgroup' | 'memory_cgroup'> {
  const of = (controller: Controller): Capability => {
    if (cgroups === undefined) return DISABLED
    const lack = cgroups.missing.find((one) => one.controller === controller)
    return lack === undefined ? AVAILABLE : missing(lack.reason, sentence(lack.remedy))
  }
  const isUsable = cgroups !== undefined && Object.keys(cgroups.directories).length > 0
  return { cgroup_version: isUsable ? cgroups.version : 0, pids_cgroup: of('pids'), memory_cgroup: of('memory') }
}

const sentence = (clause: string): string => `${clause[0]!.toUpperCase()}${clause.slice(1)}.`
