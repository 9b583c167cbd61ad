/** Waits for an outside event, until the attempt is stopped or a time limit is reached. */
import { unlessAborted } from '../../shared/process/unless-aborted.ts'
import { ExecutionError } from './executor.ts'

export interface WaitBounds {
  /** The signal of the attempt. */
  readonly signal: AbortSignal
  readonly limitMs: number
  /** Beginning of the error message: the operation. */
  readonly what: string
  /** The missing thing, for the error message: `answer`, `connection`. */
  readonly missing: string
  /** Releases resources of the wait. Called once, at its end. */
  readonly release: () => void
}

/** Settles with `work`. Rejects earlier with `external_failure` at the limit, or `cancelled` when the signal fires. */
export async function boundedWait<T>(work: Promise<T>, bounds: WaitBounds): Promise<T> {
  const { signal, limitMs, what, missing, release } = bounds
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    reject(new ExecutionError('external_failure', `${what}: no ${missing} within ${limitMs}ms`))
  }, limitMs)
  try {
    return await unlessAborted(
      Promise.race([work, late]),
      signal,
      () => new ExecutionError('cancelled', `${what} was ended`),
    )
  } finally {
    clearTimeout(timer)
    release()
  }
}
