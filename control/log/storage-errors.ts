/** Errors for changes that are not on disk, or may not be. */
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'

/** The request was refused because the disk takes no writes. Nothing changed. */
export const storageUnavailable = (cause: unknown): ServiceError =>
  new ServiceError(503, `cannot keep this on disk now: ${messageOf(cause)}; nothing was stored, try again later`, {
    cause,
  })

/** The request was carried out, but its change may not be on disk. */
export const durabilityUnknown = (cause: unknown): ServiceError =>
  new ServiceError(503, `this was done, but a crash may undo it: ${messageOf(cause)}; repeat the request later`, {
    cause,
  })

/** An appended frame was not written. `cause` is the error of the disk. */
export class NotWritten extends Error {
  override name = 'NotWritten'

  constructor(cause: unknown) {
    super(messageOf(cause), { cause })
  }
}

/** Runs `work`. Throws its error as the cause of a `NotWritten`. */
export async function orNotWritten<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new NotWritten(cause)
  }
}
