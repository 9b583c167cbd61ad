/**
 * Supplementary groups that a task in a sandbox would inherit from the service.
 *
 * Only root can drop its groups: outside a user namespace setgroups() needs a privilege, and in one that an
 * unprivileged process made the kernel forbids it.
 */
import { AVAILABLE, type Capability, missing } from '../plan/capability-set.ts'

export interface Identity {
  readonly uid: number | undefined
  readonly gid: number | undefined
  readonly groups: readonly number[]
}

const ourIdentity = (): Identity => ({
  uid: process.getuid?.(),
  gid: process.getgid?.(),
  groups: process.getgroups?.() ?? [],
})

/** Whether tasks in a sandbox are in no group but their own. */
export function userGroups({ uid, gid, groups }: Identity = ourIdentity()): Capability {
  const kept = [...new Set(groups)].filter((group) => group !== gid).sort((a, b) => a - b)
  if (uid === 0 || kept.length === 0) return AVAILABLE
  return missing(
    `the service is not root, so its tasks stay in its groups ${kept.join(', ')} and may do what these may`,
    'Start it without them: as a user of its own who is in no other group, or by setpriv --clear-groups.',
  )
}
