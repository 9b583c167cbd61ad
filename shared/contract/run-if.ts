/** When a task runs. In a file of its own, because the client and the dashboard do not need the schemas. */

/**
 * `success`: when no dependency is bad and, if there are any, one is good. `failed`: when all have ended and one is
 * bad. `always`: when all have ended. `docs/graphs.md` says what counts as bad and good.
 */
export const RUN_IFS = ['success', 'failed', 'always'] as const
export type RunIf = (typeof RUN_IFS)[number]

/** The error of a task with `run_if: "failed"` that was skipped because nothing had failed. */
export const NO_DEPENDENCY_FAILED = 'no dependency failed'

/**
 * The start of the error of a task that was skipped because of its `when`. The task and the path of the value follow.
 */
export const CONDITION_NOT_MET = 'condition not met: '

/** Whether a task that did not succeed ended as its own rules provide for. */
export const isMeantEnd = ({
  status,
  continue_on_error,
  error,
}: {
  readonly status: string
  readonly continue_on_error?: boolean | undefined
  readonly error?: string | undefined
}): boolean =>
  (status === 'failed' && continue_on_error === true) ||
  (status === 'skipped' && (error === NO_DEPENDENCY_FAILED || error?.startsWith(CONDITION_NOT_MET) === true))
