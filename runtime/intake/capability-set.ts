/**
 * What the host of the service can do, as values: found out once at start (`host/`), asked for every task (`plan.ts`).
 *
 * What is missing says why, and what somebody could do about it. The names are those of the capability manifest, where it
 * has one.
 */
import type { Namespace } from '../../shared/contract/runtime-request.ts'

export interface Missing {
  readonly isAvailable: false
  /** A clause without a full stop: `--disable-cgroup is set`. */
  readonly reason: string
  /** A sentence for whoever runs the service: `Start it without that flag.` */
  readonly remedy: string
}

export type Capability = { readonly isAvailable: true } | Missing

export const AVAILABLE: Capability = { isAvailable: true }

export const missing = (reason: string, remedy: string): Missing => ({ isAvailable: false, reason, remedy })

export interface CapabilitySet {
  /** Whether the service is root: only then can a sandbox do without a user namespace. */
  readonly isRoot: boolean
  /**
   * The least that the profile is: a user without rights, which for a service that is not root takes a user namespace.
   * Where it is missing, what else it consists of does not matter.
   */
  readonly linux_sandbox: Capability
  /** A filter for system calls. */
  readonly seccomp: Capability
  readonly namespaces: Readonly<Record<Namespace, Capability>>
  /** A root of the task's own; needs the mount namespace too. */
  readonly chroot: Capability
  /** The profile without being root. */
  readonly rootless: Capability
  /** The profile without the rights of groups that the service is in: only root can drop those. */
  readonly own_groups: Capability
  /** The version that is in use; 0 where none is. */
  readonly cgroup_version: 0 | 1 | 2
  /** Memory of a whole task, told apart when it runs out. */
  readonly memory_cgroup: Capability
  /** Processes of a whole task, in any profile. */
  readonly pids_cgroup: Capability
  readonly rlimit_cpu: Capability
  /** Address space of each process. */
  readonly rlimit_memory: Capability
}

/** The sentence on what is missing: for a refusal, and for the warnings of the manifest. */
export const unavailable = (what: string, { reason, remedy }: Missing): string =>
  `${what} is unavailable: ${reason}. ${remedy}`

/** What is said to be missing where tasks keep groups of the service. */
export const WITHOUT_GROUPS = 'linux_sandbox without groups of the service'
