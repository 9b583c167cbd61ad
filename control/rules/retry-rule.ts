/** Decides which failures are retried, and computes the wait before a retry. Pure. */
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import type { Backoff } from '../../shared/contract/submission.ts'
import { backoffMs } from './backoff.ts'

/** The optional rules of a task, as submitted. */
export interface RetryRule {
  readonly retry_on?: readonly ErrorCode[]
  readonly backoff?: Backoff
}

/** The fields of a task that determine its next attempt. */
interface Retried {
  readonly id: string
  readonly graph: { readonly id: string }
  readonly options: RetryRule
  readonly usedAttempts: number
}

/** Whether a failure with this code is retried if attempts are left. */
export const isRetriedFor = ({ options }: Pick<Retried, 'options'>, code: ErrorCode): boolean =>
  options.retry_on?.includes(code) ?? true

/**
 * Milliseconds between the last attempt of `task` and the next one. The jitter is derived from the ids and the number
 * of the attempt. So it differs between tasks that fail together, and every query for the wait gets the same result.
 */
export function nextBackoffMs({ id, graph, options, usedAttempts }: Retried): number {
  const { backoff } = options
  const isSpread = (backoff?.jitter ?? 0) > 0
  return backoffMs(usedAttempts + 1, backoff, isSpread ? spreadOf(`${graph.id}/${id}/${usedAttempts}`) : 0)
}

/** A pseudo-random number from 0 to 1. */
const spreadOf = (seed: string): number => Bun.hash.crc32(seed) / 2 ** 32
