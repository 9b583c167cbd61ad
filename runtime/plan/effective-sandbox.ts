/**
 * From the sandbox that a task asks for to the one it gets. Pure.
 *
 * Without the profile nothing else applies. With it each namespace is available or missing by itself, in the order of
 * `NAMESPACES`; then the root, which needs a mount namespace; then the seccomp filter. The rules of a network need its
 * namespace. Always in force: the task has no
 * rights, and if the service is root, the task runs as the user of sandboxes.
 */
import type { PlannedSandbox } from '../../shared/contract/runtime.ts'
import { NAMESPACES } from '../../shared/contract/runtime-request.ts'
import { type CapabilitySet, missing } from './capability-set.ts'
import type { Shortages } from './shortages.ts'

type Namespaces = NonNullable<PlannedSandbox['namespaces']>

/** Throws what `shortages` throws. */
export function effectiveSandbox(
  requested: PlannedSandbox,
  capabilities: CapabilitySet,
  shortages: Shortages,
): PlannedSandbox {
  const { profile, workspace_subdir, rootfs, chroot, network, namespaces } = requested
  const rules = typeof network === 'object' ? network : undefined
  const where = workspace_subdir === undefined ? {} : { workspace_subdir }
  const isFenced =
    profile === 'linux_sandbox' &&
    shortages.has(
      'sandbox.profile=linux_sandbox',
      capabilities.linux_sandbox,
      `the task runs with profile process, without isolation${chroot ? ' and without sandbox.chroot' : ''}${rules === undefined ? '' : ' and without the rules of sandbox.network'}`,
    )
  if (!isFenced) return { profile: 'process', ...where, chroot: false }
  const own = effectiveNamespaces(namespaces!, rules !== undefined, capabilities, shortages)
  const hasRoot = chroot && hasOwnRoot(own, capabilities, shortages)
  shortages.has('the system call filter of linux_sandbox', capabilities.seccomp, 'the task may make any system call')
  return {
    profile: 'linux_sandbox',
    ...where,
    ...(hasRoot && { rootfs: rootfs! }),
    chroot: hasRoot,
    network: own.net ? (rules ?? 'none') : 'host',
    namespaces: own,
  }
}

function effectiveNamespaces(
  requested: Namespaces,
  hasRules: boolean,
  capabilities: CapabilitySet,
  shortages: Shortages,
): Namespaces {
  const own: Record<string, boolean> = {}
  for (const name of NAMESPACES) {
    const capability = capabilities.namespaces[name]
    const isAsked = requested[name] === true
    const isOfRules = name === 'net' && hasRules
    own[name] =
      isAsked &&
      shortages.has(
        isOfRules ? 'sandbox.network with rules' : `sandbox.namespaces.${name}`,
        capability,
        isOfRules ? 'the task has the network of the host, without rules' : `the task shares ${name} with the host`,
      )
    // The user namespace is added where it is available. Only root can do without.
    const isDeclined = requested[name] === false && capabilities.isRoot
    if (name === 'user' && !isAsked && !isDeclined) own[name] = capability.isAvailable
  }
  return own as Namespaces
}

function hasOwnRoot({ mount }: Namespaces, capabilities: CapabilitySet, shortages: Shortages): boolean {
  const withoutMount = missing('it needs a mount namespace', 'See to sandbox.namespaces.mount first.')
  return shortages.has(
    'sandbox.chroot',
    mount ? capabilities.chroot : withoutMount,
    'the task sees the files of the host instead of rootfs',
  )
}
