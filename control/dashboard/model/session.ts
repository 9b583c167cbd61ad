/** What the caller may do, and the code of a link that signs in. Pure. */
import type { Right } from '../../../shared/contract/rights.ts'
import type { SessionResponse } from '../../../shared/contract/session.ts'

/**
 * Why the caller may not do it; undefined if it may. `submittedBy` is the name of the token that submitted the graph: who may
 * cancel its own graphs may cancel that one. Until the session is known everything is offered, and the service refuses.
 */
export function lackOf(
  session: Pick<SessionResponse, 'name' | 'rights'> | undefined,
  right: Right,
  submittedBy?: string,
): string | undefined {
  if (session === undefined || session.rights.includes(right)) return undefined
  const isOwn = submittedBy !== undefined && submittedBy === session.name
  if (right === 'cancel' && isOwn && session.rights.includes('cancel_own')) return undefined
  return `The token ${session.name} lacks the right ${right}.`
}

/** Whether the page shows what belongs to the whole service, such as schedules: a token of a tenant is refused it. */
export const seesService = ({ tenant }: Pick<SessionResponse, 'tenant'>): boolean => tenant === undefined

/** Whether tasks of the caller may run in a strict sandbox only. */
export const isFenced = (session: Pick<SessionResponse, 'tenant' | 'rights'> | undefined): boolean =>
  session?.tenant !== undefined && !session.rights.includes('host')

export const signedInName = ({ name }: Pick<SessionResponse, 'name'>): string => name ?? 'token of the service'

/** The code in the address of a link of `taskmill open`: browsers send a fragment to nobody. Undefined in other addresses. */
export const signInCode = (hash: string): string | undefined => /^#\/sign-in\/([\w-]+)$/.exec(hash)?.[1]
