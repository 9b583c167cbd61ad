/**
 * What follows from the namespaces of a sandbox, for each of the 128 combinations. Pure.
 *
 * Each namespace is available or missing by itself, in the order of `NAMESPACES`. None makes another one safe: a sandbox of a
 * root service has a user of its own, any other one a user namespace. In all of them the task has no rights, the filter is the
 * same, and its end ends what it started.
 */
import type { PlannedSandbox } from '../../shared/contract/runtime.ts'
import { NAMESPACES, type Namespace } from '../../shared/contract/runtime-request.ts'
import type { CapabilitySet } from './capability-set.ts'

/** What the launcher can make a sandbox of: namespaces, and the seccomp filter. */
export const SANDBOX_FEATURES = [...NAMESPACES, 'seccomp'] as const
export type SandboxFeature = (typeof SANDBOX_FEATURES)[number]

export type Namespaces = NonNullable<PlannedSandbox['namespaces']>

/** The parts of the host that a task in a sandbox can use. */
export interface Shared {
  readonly network: boolean
  /** The files of the host, as the user of the service, who can read the token file. */
  readonly serviceFiles: boolean
  /** The files that every user can read. */
  readonly publicFiles: boolean
}

export const NOTHING_SHARED: Shared = { network: false, serviceFiles: false, publicFiles: false }

export interface Isolation {
  readonly namespaces: Namespaces
  /** Requested, and missing on this host. */
  readonly lacking: readonly Namespace[]
  readonly features: readonly SandboxFeature[]
  readonly shared: Shared
  /** What may surprise about the combination. */
  readonly warnings: readonly string[]
}

export function isolationOf(requested: Namespaces, capabilities: CapabilitySet): Isolation {
  const { isRoot, seccomp } = capabilities
  const has = (name: Namespace) => capabilities.namespaces[name].isAvailable
  // The user namespace is added where it is available. Only root can do without.
  const wants = (name: Namespace) =>
    requested[name] === true || (name === 'user' && !(requested.user === false && isRoot))
  const namespaces = Object.fromEntries(NAMESPACES.map((name) => [name, wants(name) && has(name)])) as Namespaces
  return {
    namespaces,
    lacking: NAMESPACES.filter((name) => requested[name] === true && !has(name)),
    features: SANDBOX_FEATURES.filter((name) => (name === 'seccomp' ? seccomp.isAvailable : namespaces[name])),
    shared: {
      network: !namespaces.net,
      serviceFiles: !namespaces.mount && !isRoot,
      publicFiles: !namespaces.mount,
    },
    warnings: warningsOf(requested, namespaces, capabilities),
  }
}

function warningsOf(
  requested: Namespaces,
  { user, pid, mount }: Namespaces,
  { cgroup_version, pids_cgroup }: CapabilitySet,
): string[] {
  const warnings: string[] = []
  if (requested.user === false && user) {
    warnings.push(
      'sandbox.namespaces.user=false counts only where the service is root: the task has user ids of its own',
    )
  }
  if (pid && !mount) {
    warnings.push('sandbox.namespaces.pid without mount: /proc shows the processes of the host')
  }
  if (!pid && cgroup_version === 0) {
    const remedy = pids_cgroup.isAvailable ? '' : `. ${pids_cgroup.remedy}`
    warnings.push(
      `without sandbox.namespaces.pid and without a cgroup: what the task starts may outlive it where its launcher is killed${remedy}`,
    )
  }
  return warnings
}
