/**
 * Who may end or remove a task: with an owner, only its owner. That is a claim, unless the caller has a token with a name, which is
 * the owner of what it submits.
 */
import { type Caller, hasRight, lacking } from '../../shared/http/callers.ts'
import { Refusal } from '../refusal.ts'

/** A call of somebody about one task. */
export interface OwnersCall {
  readonly taskId: string
  /** The owner that the caller claims to be. */
  readonly owner: string | null
  /** Undefined: the token of the service, or none where none is needed. */
  readonly by?: Caller | undefined
  readonly traceId: string
}

/** Throws 403 unless the caller claims to be `wanted`, the owner of the task. Null: it has none. */
export function ensureOwner(verb: 'kill' | 'delete', wanted: string | null, { owner, by }: OwnersCall): void {
  if (by !== undefined && verb === 'kill' && !hasRight(by, 'cancel') && wanted !== by.grant.name)
    throw lacking(by, 'cancel')
  if (wanted === null || wanted === owner) return
  throw new Refusal('permission_denied', `${verb} requires owner '${wanted}'`, { header: 'x-service-owner' })
}
