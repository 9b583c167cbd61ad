/** The wait before an attempt. Pure. */
import type { Backoff } from '../../shared/contract/submission.ts'

/**
 * The backoff of tasks without one. A shorter `initial_ms` would flood a service that is down. A longer `max_ms` would
 * delay tasks after the service is back.
 */
export const DEFAULT_BACKOFF = { initial_ms: 100, factor: 2, max_ms: 10_000, jitter: 0 } as const

/** Attempts that may follow one another without a wait. */
export const MAX_UNDELAYED_ATTEMPTS = 10

/** Milliseconds before each further attempt, at least. Without them a task that fails at once would keep disk and log busy. */
export const MIN_BACKOFF_MS = 10

/**
 * Milliseconds before attempt `n` (1-based). By default 0, 100, 200, 400 ... at most 10,000. Source: spec, Limits A.
 * The jitter shortens the wait by `jitter * spread` of it. `spread` is random, from 0 to 1. After the tenth attempt each
 * wait is `MIN_BACKOFF_MS` at least.
 */
export function backoffMs(n: number, backoff: Backoff = {}, spread = 0): number {
  if (n < 2) return 0
  return Math.max(chosenMs(n, backoff, spread), n > MAX_UNDELAYED_ATTEMPTS ? MIN_BACKOFF_MS : 0)
}

function chosenMs(n: number, backoff: Backoff, spread: number): number {
  const initialMs = backoff.initial_ms ?? DEFAULT_BACKOFF.initial_ms
  const maxMs = backoff.max_ms ?? DEFAULT_BACKOFF.max_ms
  const jitter = backoff.jitter ?? DEFAULT_BACKOFF.jitter
  if (initialMs === 0) return 0
  const wholeMs = Math.min(initialMs * (backoff.factor ?? DEFAULT_BACKOFF.factor) ** (n - 2), maxMs)
  return Math.round(wholeMs * (1 - jitter * spread))
}
