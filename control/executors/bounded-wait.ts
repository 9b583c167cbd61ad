/** Waiting for something outside: not beyond the end of the attempt, and never longer than a limit. */
import { unlessAborted } from '../../shared/unless-aborted.ts'
import { ExecutionError } from './executor.ts'

export interface WaitBounds {
  /** The attempt's. */
  readonly signal: AbortSignal
  readonly limitMs: number
  /** What is waited for, as the beginning of the message of a failure. */
  readonly what: string
  /** What there is none of when the limit is reached: `answer`, `connection`. */
  readonly missing: string
  /** Releases what the wait holds. Called once, whatever the end was. */
  readonly release: () => void
}

/** Settles as `work` does, if that comes first. Rejects with `external_failure` at the limit and `cancelled` by the signal. */
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
