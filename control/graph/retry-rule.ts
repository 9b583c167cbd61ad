/** Which failures of a task are followed by another attempt, and after how long. Pure. */
import type { Backoff, ErrorCode } from '../../shared/contract/control.ts'
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

/** A task as far as its next attempt goes. */
interface Retried {
  readonly id: string
  readonly graph: { readonly id: string }
  readonly retries: RetryRule | undefined
  readonly usedAttempts: number
}

/** Whether a failure with this code is followed by another attempt, if attempts are left. */
export const isRetriedFor = ({ retries }: Pick<Retried, 'retries'>, code: ErrorCode): boolean =>
  retries?.retry_on?.includes(code) ?? true

/**
 * Milliseconds between the last attempt of `task` and the next one. A jitter follows from the ids and the number of the
 * attempt: it differs between tasks that fail together, and whoever asks for the wait of a task gets the same one.
 */
export function nextBackoffMs({ id, graph, retries, usedAttempts }: Retried): number {
  const { backoff } = retries ?? {}
  const isSpread = (backoff?.jitter ?? 0) > 0
  return backoffMs(usedAttempts + 1, backoff, isSpread ? spreadOf(`${graph.id}/${id}/${usedAttempts}`) : 0)
}

/** A number from 0 to 1 that looks like a random one. */
const spreadOf = (seed: string): number => Bun.hash.crc32(seed) / 2 ** 32
