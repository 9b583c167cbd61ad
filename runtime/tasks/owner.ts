/** Who may end or remove a task: with an owner, only its owner. A claim, as no owner has a credential of his own. */
import { Refusal } from '../refusal.ts'

/** A call of somebody about one task. */
export interface OwnersCall {
  readonly taskId: string
  /** The owner that the caller claims to be. */
  readonly owner: string | null
  readonly traceId: string
}

/** Throws 403 unless the caller claims to be `wanted`, the owner of the task. Null: it has none. */
export function ensureOwner(verb: 'kill' | 'delete', wanted: string | null, { owner }: OwnersCall): void {
  if (wanted === null || wanted === owner) return
  throw new Refusal('permission_denied', `${verb} requires owner '${wanted}'`, { header: 'x-service-owner' })
}
