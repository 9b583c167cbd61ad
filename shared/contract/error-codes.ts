/** The codes of failures of tasks. */

/** Values of `runtime.error.code`: why a task did not succeed. */
export const ERROR_CODES = [
  'unknown',
  'invalid_input',
  'launch_failed',
  'timeout',
  'cancelled',
  'memory_limit_exceeded',
  'cpu_limit_exceeded',
  'resource_limit_exceeded',
  'sandbox_setup_failed',
  'exit_nonzero',
  'denied',
  'not_found',
  'external_failure',
  'internal',
] as const
export type ErrorCode = (typeof ERROR_CODES)[number]
