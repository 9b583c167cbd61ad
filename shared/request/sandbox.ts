/** Validates the sandbox of a request, without looking at the host. Pure. */
import type { PlannedSandbox } from '../contract/runtime.ts'
import {
  NETWORKS,
  type Network,
  type NetworkRules,
  SANDBOX_PROFILES,
  type SandboxPolicy,
} from '../contract/runtime-request.ts'
import { MAX_PATH_BYTES } from './execution.ts'
import { requestFault } from './fault.ts'
import { validRules } from './network-rules.ts'
import { namesIn } from './secrets.ts'
import { checkText, isBlank, shortened } from './text.ts'

/** Bytes of `workspace_subdir`, which is appended to another path. */
export const MAX_SUBDIR_BYTES = 1024

/** Names in it: far fewer than the directories below each other that can be counted for `disk_bytes`. */
export const MAX_SUBDIR_NAMES = 128

/** Bytes of one name in it: NAME_MAX in Linux. */
const MAX_NAME_BYTES = 255

/** Default namespaces. The host decides about `user`, and a service may be set to another `net`. */
export const DEFAULT_NAMESPACES = { mount: true, pid: true, uts: true, ipc: true, net: true, cgroup: false } as const

type Namespaces = NonNullable<PlannedSandbox['namespaces']>

/** A sandbox with its defaults, but for those of the service: a task that says nothing about its network has no `net`. */
export interface RequestedSandbox extends Omit<PlannedSandbox, 'namespaces'> {
  readonly network?: Network | NetworkRules
  readonly namespaces?: Omit<Namespaces, 'net'> & { readonly net?: boolean }
}

/** Throws `RequestFault` with the first fault. Blank paths count as absent. */
export function validSandbox(given: SandboxPolicy = {}): RequestedSandbox {
  const { profile = 'process', workspace_subdir, rootfs, chroot = false, namespaces } = given
  if (!SANDBOX_PROFILES.includes(profile))
    throw requestFault(`sandbox.profile must be ${SANDBOX_PROFILES.join(' or ')}`)
  if (workspace_subdir !== undefined) checkSubdir(workspace_subdir)
  if (chroot && isBlank(rootfs)) throw requestFault('sandbox.rootfs is required when sandbox.chroot=true')
  if (chroot && profile !== 'linux_sandbox') {
    throw requestFault('sandbox.chroot requires sandbox.profile=linux_sandbox')
  }
  if (rootfs !== undefined && !isBlank(rootfs)) checkRootfs(rootfs)
  if (chroot && namespaces?.mount === false) {
    throw requestFault('sandbox.namespaces.mount=false cannot be combined with sandbox.chroot=true')
  }
  const network = given.network === undefined ? undefined : validNetwork(given.network, profile, namespaces?.net)
  const isFenced = profile === 'linux_sandbox' || namespaces !== undefined
  const { net: _, ...defaults } = DEFAULT_NAMESPACES
  return {
    profile,
    ...(network !== undefined && { network }),
    ...(!isBlank(workspace_subdir) && { workspace_subdir: workspace_subdir! }),
    ...(!isBlank(rootfs) && { rootfs: rootfs! }),
    chroot,
    ...(isFenced && {
      namespaces: { ...defaults, ...namespaces, ...(network !== undefined && { net: network !== 'host' }) },
    }),
  }
}

function validNetwork(
  network: Network | NetworkRules,
  profile: SandboxPolicy['profile'],
  net: boolean | undefined,
): Network | NetworkRules {
  const hasRules = typeof network === 'object'
  if (!hasRules && !NETWORKS.includes(network)) {
    throw requestFault(`sandbox.network must be ${NETWORKS.join(', ')} or an object of rules`)
  }
  const what = hasRules ? 'sandbox.network with rules' : `sandbox.network=${network}`
  if (network !== 'host' && profile !== 'linux_sandbox') {
    throw requestFault(`${what} requires sandbox.profile=linux_sandbox`)
  }
  if (net !== undefined && net !== (network !== 'host')) {
    throw requestFault(`${what} contradicts sandbox.namespaces.net=${net} (leave out sandbox.namespaces.net)`)
  }
  return hasRules ? validRules(network) : network
}

function checkSubdir(subdir: string): void {
  const path = 'sandbox.workspace_subdir'
  checkText(path, subdir)
  if (subdir.startsWith('/')) throw requestFault(`${path} must be relative`)
  const names = namesIn(subdir)
  if (names.includes('..')) throw requestFault(`${path} cannot contain parent traversal`)
  const bytes = Buffer.byteLength(subdir)
  if (bytes > MAX_SUBDIR_BYTES) throw requestFault(`${path} has ${bytes} bytes (at most ${MAX_SUBDIR_BYTES})`)
  if (names.length > MAX_SUBDIR_NAMES) {
    throw requestFault(`${path} has ${names.length} names (at most ${MAX_SUBDIR_NAMES})`)
  }
  const long = names.find((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)
  if (long !== undefined) {
    throw requestFault(`${path}: ${shortened(long)} is longer than the ${MAX_NAME_BYTES} bytes of a file name`)
  }
}

/** Whether it is a directory is for the host to say. */
function checkRootfs(rootfs: string): void {
  checkText('sandbox.rootfs', rootfs)
  if (!rootfs.startsWith('/')) throw requestFault('sandbox.rootfs must be an absolute path')
  const bytes = Buffer.byteLength(rootfs)
  if (bytes > MAX_PATH_BYTES) {
    throw requestFault(`sandbox.rootfs has ${bytes} bytes (a path has at most ${MAX_PATH_BYTES})`)
  }
}
