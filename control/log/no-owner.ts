/** The error for callers while a graph has no owner, or that one is silent. */
import { ServiceError } from '../../shared/contract/errors.ts'

export const noOwner = (why: string, cause?: unknown): ServiceError =>
  new ServiceError(503, `${why}; try again`, { cause })
