/**
 * The user that the service runs as: its name, and the supplementary groups that a task in a sandbox would inherit.
 *
 * Only root can drop its groups: outside a user namespace setgroups() needs a privilege, and in one that an
 * unprivileged process made the kernel forbids it.
 */
import { join } from 'node:path'
import { AVAILABLE, type Capability, missing } from '../plan/capability-set.ts'
import { readText } from './read-text.ts'

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

/** The name of the user, or its number where the user database has none, as in many containers. */
export function serviceUser(uid: number | undefined, root = '/'): string {
  const users = (readText(join(root, 'etc/passwd')) ?? '').split('\n').map((line) => line.split(':'))
  const own = users.find(([, , id]) => id === String(uid))
  return own?.[0] || String(uid ?? 'taskmill')
}
