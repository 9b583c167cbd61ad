/** The wait before an attempt. Pure. */

export const FIRST_BACKOFF_MS = 100

/** Longer would leave a service that came back unused; shorter hammers one that did not. */
export const MAX_BACKOFF_MS = 10_000

/** Milliseconds before attempt `n` (1-based): 0, 100, 200, 400 ... at most 10,000. Source: spec, Limits A. */
export const backoffMs = (n: number): number => (n < 2 ? 0 : Math.min(FIRST_BACKOFF_MS * 2 ** (n - 2), MAX_BACKOFF_MS))
