/**
 * The capabilities of the host, as values. `host/` determines them once at the start, `plan.ts` reads them for every
 * task.
 *
 * A missing capability has a reason and a remedy. Names are those of the capability manifest where it has one.
 */
import type { Namespace } from '../../shared/contract/runtime-request.ts'

export interface Missing {
  readonly isAvailable: false
  /** A clause without a full stop: `--disable-cgroup is set`. */
  readonly reason: string
  /** A sentence for the operator of the service: `Start it without that flag.` */
  readonly remedy: string
}

export type Capability = { readonly isAvailable: true } | Missing

export const AVAILABLE: Capability = { isAvailable: true }

export const missing = (reason: string, remedy: string): Missing => ({ isAvailable: false, reason, remedy })

export interface CapabilitySet {
  /** Whether the service is root. Only then can a sandbox do without a user namespace. */
  readonly isRoot: boolean
  /**
   * The minimum of the profile: a user without rights. Without root that takes a user namespace. When it is missing,
   * the other parts of the profile do not matter.
   */
  readonly linux_sandbox: Capability
  /** The seccomp filter. */
  readonly seccomp: Capability
  readonly namespaces: Readonly<Record<Namespace, Capability>>
  /** A root directory of the task's own. Needs the mount namespace, too. */
  readonly chroot: Capability
  /** The profile without root. */
  readonly rootless: Capability
  /** The profile without the supplementary groups of the service. Only root can drop those. */
  readonly own_groups: Capability
  /** The version in use; 0 for none. */
  readonly cgroup_version: 0 | 1 | 2
  /** Limits the memory of a whole task, and detects when it runs out. */
  readonly memory_cgroup: Capability
  /** Limits the processes of a whole task, in any profile. */
  readonly pids_cgroup: Capability
  readonly rlimit_cpu: Capability
  /** Limits the address space of each process. */
  readonly rlimit_memory: Capability
}

/** The sentence about a missing capability, for refusals and for the warnings of the manifest. */
export const unavailable = (what: string, { reason, remedy }: Missing): string =>
  `${what} is unavailable: ${reason}. ${remedy}`

/** The name of what is missing when tasks keep supplementary groups of the service. */
export const WITHOUT_GROUPS = 'linux_sandbox without groups of the service'
