/** Decides which failures are retried, and computes the wait before a retry. Pure. */
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import type { Backoff } from '../../shared/contract/submission.ts'
import { backoffMs } from './backoff.ts'

/** The optional rules of a task, as submitted. */
export interface RetryRule {
  readonly retry_on?: readonly ErrorCode[]
  readonly backoff?: Backoff
}

/** The rules among the fields of a submitted task; undefined if it has none. */
export function retryRule({
  retry_on,
  backoff,
}: {
  readonly retry_on?: readonly ErrorCode[] | null
  readonly backoff?: Backoff | null
}): RetryRule | undefined {
  if (retry_on == null && backoff == null) return undefined
  return { ...(retry_on != null && { retry_on }), ...(backoff != null && { backoff }) }
}

/** The fields of a task that determine its next attempt. */
interface Retried {
  readonly id: string
  readonly graph: { readonly id: string }
  readonly retries: RetryRule | undefined
  readonly usedAttempts: number
}

/** Whether a failure with this code is retried if attempts are left. */
export const isRetriedFor = ({ retries }: Pick<Retried, 'retries'>, code: ErrorCode): boolean =>
  retries?.retry_on?.includes(code) ?? true

/**
 * Milliseconds between the last attempt of `task` and the next one. The jitter is derived from the ids and the number
 * of the attempt. So it differs between tasks that fail together, and every query for the wait gets the same result.
 */
export function nextBackoffMs({ id, graph, retries, usedAttempts }: Retried): number {
  const { backoff } = retries ?? {}
  const isSpread = (backoff?.jitter ?? 0) > 0
  return backoffMs(usedAttempts + 1, backoff, isSpread ? spreadOf(`${graph.id}/${id}/${usedAttempts}`) : 0)
}

/** A pseudo-random number from 0 to 1. */
const spreadOf = (seed: string): number => Bun.hash.crc32(seed) / 2 ** 32
