/** Hosts for tests of the plan: one with all capabilities, and random hosts that lack some. */
import fc from 'fast-check'
import { AVAILABLE, type Capability, type CapabilitySet, missing } from '../../runtime/plan/capability-set.ts'
import { NAMESPACES, type Namespace } from '../../shared/contract/runtime-request.ts'

/** What can be missing by itself. */
const PARTS = [
  'linux_sandbox',
  'seccomp',
  'chroot',
  'rootless',
  'own_groups',
  'memory_cgroup',
  'pids_cgroup',
  'rlimit_cpu',
  'rlimit_memory',
] as const
export type Part = (typeof PARTS)[number] | Namespace

export const MISSING = missing('it broke', 'Mend it.')

/** A host that can do everything but these. */
export function hostWithout(...lacking: readonly Part[]): CapabilitySet {
  const capabilityOf = (part: Part): Capability => (lacking.includes(part) ? MISSING : AVAILABLE)
  const of = <P extends Part>(parts: readonly P[]) =>
    Object.fromEntries(parts.map((part) => [part, capabilityOf(part)])) as Record<P, Capability>
  return { isRoot: true, cgroup_version: 2, ...of(PARTS), namespaces: of(NAMESPACES) }
}

/** A host that lacks anything. */
export const randomHost: fc.Arbitrary<CapabilitySet> = fc
  .tuple(fc.subarray([...PARTS, ...NAMESPACES]), fc.boolean())
  .map(([lacking, isRoot]) => ({ ...hostWithout(...lacking), isRoot }))
