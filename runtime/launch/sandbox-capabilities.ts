/** The sandboxes that this host allows, as values for plans. Pure. */
import { NAMESPACES, type Namespace } from '../../shared/contract/runtime-request.ts'
import { AVAILABLE, type Capability, type CapabilitySet, type Missing, missing } from '../plan/capability-set.ts'
import { failureOf } from './faults.ts'
import type { ProbeFault, SandboxProbe } from './sandbox-probe.ts'

export type SandboxCapabilities = Pick<
  CapabilitySet,
  'linux_sandbox' | 'seccomp' | 'namespaces' | 'chroot' | 'rootless'
>

const DISABLED = missing('--disable-linux-sandbox is set', 'Start the service without that flag.')
const NO_LAUNCHER = missing(`there is no launcher for ${process.platform}`, 'Run the service on Linux.')
const NO_ANSWER = missing(
  'the launcher does not say what a sandbox can be made of',
  'Run taskmill-runtime doctor, and report what it prints.',
)

export interface SandboxTrial {
  readonly isLauncherNative: boolean
  readonly isDisabled: boolean
  readonly isRoot: boolean
  /** Undefined where the launcher did not answer, or was not asked. */
  readonly probe: SandboxProbe | undefined
}

export function sandboxCapabilities({
  isLauncherNative,
  isDisabled,
  isRoot,
  probe,
}: SandboxTrial): SandboxCapabilities {
  if (!isLauncherNative) return nothing(NO_LAUNCHER)
  if (isDisabled) return nothing(DISABLED)
  if (probe === undefined) return nothing(NO_ANSWER)
  // Without another user or a user namespace there is no sandbox.
  const least = isRoot ? probe.none : (probe.none ?? probe.user)
  if (least !== null) return nothing(missingBy(least))
  const oddity = isOdd(probe) ? probe.whole : null
  return {
    linux_sandbox: of(oddity),
    seccomp: of(probe.seccomp),
    namespaces: namespaces((name) => of(probe[name])),
    chroot: of(probe.chroot),
    rootless: of(probe.rootless),
  }
}

/** Each feature works alone, but not all together. */
const isOdd = (probe: SandboxProbe): boolean =>
  probe.seccomp === null && NAMESPACES.every((name) => probe[name] === null)

const of = (fault: ProbeFault | null): Capability => (fault === null ? AVAILABLE : missingBy(fault))

function missingBy({ step, errno }: ProbeFault): Missing {
  const { what, reason, remedy } = failureOf(step, errno)
  return missing(`a task was tried, and ${what}: ${reason}`, remedy === undefined ? 'None is known.' : sentence(remedy))
}

const sentence = (clause: string): string => `${clause[0]!.toUpperCase()}${clause.slice(1)}.`

const nothing = (lack: Missing): SandboxCapabilities => ({
  linux_sandbox: lack,
  seccomp: lack,
  namespaces: namespaces(() => lack),
  chroot: lack,
  rootless: lack,
})

const namespaces = (capability: (name: Namespace) => Capability) =>
  Object.fromEntries(NAMESPACES.map((name) => [name, capability(name)])) as unknown as Record<Namespace, Capability>
