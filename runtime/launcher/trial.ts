/** What this host can do for tasks, tried here and now, as values for plans. For the service and for doctor alike. */
import type { CapabilitySet } from '../intake/capability-set.ts'
import type { TaskCgroups } from './cgroup.ts'
import { cgroupCapabilities } from './cgroup-capabilities.ts'
import type { LauncherProgram } from './embedded.ts'
import { sandboxCapabilities } from './sandbox-capabilities.ts'
import { probeSandbox } from './sandbox-probe.ts'

export interface TrialOptions {
  /** Undefined where none runs. */
  readonly launcher: LauncherProgram | undefined
  /** Undefined where they are disabled. */
  readonly cgroups: TaskCgroups | undefined
  /** The user of sandboxes, for who is root. */
  readonly sandboxUid: number | undefined
  readonly isSandboxDisabled: boolean
}

export function tryCapabilities({
  launcher,
  cgroups,
  sandboxUid,
  isSandboxDisabled,
}: TrialOptions): Omit<CapabilitySet, 'isRoot' | 'rlimit_cpu' | 'rlimit_memory'> {
  const isLauncherNative = launcher?.isNative === true
  return {
    ...cgroupCapabilities(cgroups),
    ...sandboxCapabilities({
      isLauncherNative,
      isDisabled: isSandboxDisabled,
      isRoot: sandboxUid !== undefined,
      probe: isLauncherNative && !isSandboxDisabled ? probeSandbox(launcher, sandboxUid) : undefined,
    }),
  }
}
