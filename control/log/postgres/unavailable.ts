/** The error for callers while the database does not answer, or the lease may be over. */
import { messageOf, ServiceError } from '../../../shared/contract/errors.ts'

/**
 * Milliseconds after which callers who wait for the database get 503. Longer than a failover to a standby takes, so that
 * callers do not notice that.
 */
export const ANSWER_WITHIN_MS = 2_000

/** Characters that the database takes a millisecond longer for. */
export const CHARACTERS_PER_MS = 2_000

export const unavailable = (why: string, cause?: unknown): ServiceError =>
  new ServiceError(503, `cannot keep this in the database now: ${why}; try again later`, { cause })

/** Throws 503 for what the database rejected with. */
export function refuseAway(error: unknown): never {
  throw unavailable(messageOf(error), error)
}
