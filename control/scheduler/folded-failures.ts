/** Which failures of a task that is retried have a log line: a task may fail 100 times a second for minutes. Pure. */

/** Failed attempts of a task with a line each. */
export const LOGGED_FAILURES = 10

/** Failed attempts for each line after those. */
export const FAILURES_PER_LOG_LINE = 100

/**
 * The number of failures without a line between the last line and that of failure `n` (1-based); undefined if failure `n` has
 * no line.
 */
export function foldedFailures(n: number): number | undefined {
  if (n <= LOGGED_FAILURES) return 0
  if (n % FAILURES_PER_LOG_LINE !== 0) return undefined
  return n - Math.max(n - FAILURES_PER_LOG_LINE, LOGGED_FAILURES) - 1
}
