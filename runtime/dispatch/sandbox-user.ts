/**
 * The user that a sandbox runs as, where the service is root. Pure.
 *
 * Sandboxes share a user. A user may end its processes and, without a user namespace in between, read their environment and
 * files by `/proc`. A pid namespace hides the processes of other tasks. A task without one sees them, so it gets another user,
 * which has no rights over them.
 */
import type { PlannedSandbox } from '../../shared/contract/runtime.ts'

export interface SandboxUser {
  readonly uid: number
  readonly name: string
}

export interface SandboxUsers {
  readonly usual: SandboxUser
  /** Of tasks without a pid namespace. */
  readonly unfenced: SandboxUser
}

/** The user id of tasks without a pid namespace. Never root. */
export const unfencedUid = (sandboxUid: number): number => (sandboxUid > 1 ? sandboxUid - 1 : sandboxUid + 1)

/** The user of a task; undefined where that is the user of the service. */
export function sandboxUser(
  { profile, namespaces }: PlannedSandbox,
  users: SandboxUsers | undefined,
): SandboxUser | undefined {
  if (profile !== 'linux_sandbox' || users === undefined) return undefined
  return namespaces?.pid ? users.usual : users.unfenced
}
