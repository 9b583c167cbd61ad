/** Tries what this host can do for tasks. Returns values for plans. Used by the service and by doctor. */

import { cgroupCapabilities } from '../host/cgroup-capabilities.ts'
import type { TaskCgroups } from '../host/task-cgroups.ts'
import type { CapabilitySet } from '../plan/capability-set.ts'
import type { LauncherProgram } from './embedded.ts'
import { type SandboxCapabilities, sandboxCapabilities } from './sandbox-capabilities.ts'
import { probeSandbox } from './sandbox-probe.ts'

export interface SandboxTrialOptions {
  /** Undefined where none can run. */
  readonly launcher: LauncherProgram | undefined
  /** The user of sandboxes, if the service is root. */
  readonly sandboxUid: number | undefined
  readonly isSandboxDisabled: boolean
  /** Ends the trial early. */
  readonly signal?: AbortSignal
}

export interface TrialOptions extends SandboxTrialOptions {
  /** Undefined where they are disabled. */
  readonly cgroups: TaskCgroups | undefined
}

export const tryCapabilities = async (
  options: TrialOptions,
): Promise<Omit<CapabilitySet, 'isRoot' | 'own_groups' | 'rlimit_cpu' | 'rlimit_memory'>> => ({
  ...cgroupCapabilities(options.cgroups),
  ...(await trySandbox(options)),
})

/** The part that needs a process and takes time. A start does other work meanwhile. */
export async function trySandbox({
  launcher,
  sandboxUid,
  isSandboxDisabled,
  signal,
}: SandboxTrialOptions): Promise<SandboxCapabilities> {
  const asked = launcher?.isNative === true && !isSandboxDisabled ? launcher : undefined
  return sandboxCapabilities({
    isLauncherNative: launcher?.isNative === true,
    isDisabled: isSandboxDisabled,
    isRoot: sandboxUid !== undefined,
    probe: asked && (await probeSandbox(asked, sandboxUid, signal)),
  })
}
