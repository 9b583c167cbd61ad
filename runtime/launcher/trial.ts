/** What this host can do for tasks, tried here and now, as values for plans. For the service and for doctor alike. */
import type { CapabilitySet } from '../intake/capability-set.ts'
import type { TaskCgroups } from './cgroup.ts'
import { cgroupCapabilities } from './cgroup-capabilities.ts'
import type { LauncherProgram } from './embedded.ts'
import { type SandboxCapabilities, sandboxCapabilities } from './sandbox-capabilities.ts'
import { probeSandbox, type SandboxProbe, startProbe } from './sandbox-probe.ts'

export interface SandboxTrialOptions {
  /** Undefined where none runs. */
  readonly launcher: LauncherProgram | undefined
  /** The user of sandboxes, for who is root. */
  readonly sandboxUid: number | undefined
  readonly isSandboxDisabled: boolean
}

export interface TrialOptions extends SandboxTrialOptions {
  /** Undefined where they are disabled. */
  readonly cgroups: TaskCgroups | undefined
}

export const tryCapabilities = (
  options: TrialOptions,
): Omit<CapabilitySet, 'isRoot' | 'rlimit_cpu' | 'rlimit_memory'> => ({
  ...cgroupCapabilities(options.cgroups),
  ...judge(options, canAsk(options) ? probeSandbox(options.launcher, options.sandboxUid) : undefined),
})

/** The part that takes a process and its time, for a start that has something else to do meanwhile. */
export const trySandbox = async (options: SandboxTrialOptions): Promise<SandboxCapabilities> =>
  judge(options, canAsk(options) ? await startProbe(options.launcher, options.sandboxUid) : undefined)

const canAsk = (
  options: SandboxTrialOptions,
): options is SandboxTrialOptions & { readonly launcher: LauncherProgram } =>
  options.launcher?.isNative === true && !options.isSandboxDisabled

const judge = (
  { launcher, sandboxUid, isSandboxDisabled }: SandboxTrialOptions,
  probe: SandboxProbe | undefined,
): SandboxCapabilities =>
  sandboxCapabilities({
    ...{
      isLauncherNative: launcher?.isNative === true,
      isDisabled: isSandboxDisabled,
      isRoot: sandboxUid !== undefined,
    },
    probe,
  })
