/** The error for callers while the database does not answer, or the lease may be over. */
import { ServiceError } from '../../shared/errors.ts'

/** Milliseconds after which callers who wait for the database get 503. */
export const ANSWER_WITHIN_MS = 5_000

export const unavailable = (why: string, cause?: unknown): ServiceError =>
  new ServiceError(503, `cannot keep this in the database now: ${why}; try again later`, { cause })
