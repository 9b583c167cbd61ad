/** Graphs that the control service accepts although they cannot succeed: `run` submits them only if it is told to. Pure. */

/** The faults of a dry run, as far as they are read here. */
export interface CertainFailure {
  readonly message: string
  readonly task_id?: string | undefined
  readonly fails?: true | undefined
}

/** Whether the annotation `expect` of a task says that it does not succeed: one that is meant to be skipped never runs. */
export const isMeant = (expect: unknown): boolean => expect === 'failed' || expect === 'skipped'

/** The faults of tasks that are certain to fail, and the graph with them, without being meant to. */
export const unmeantFailures = <F extends CertainFailure>(
  errors: readonly F[] | undefined,
  expectOf: (taskId: string) => unknown,
): F[] => (errors ?? []).filter(({ fails, task_id = '' }) => fails === true && !isMeant(expectOf(task_id)))

/** Why a graph with these faults was not submitted; undefined without any. */
export function refusalOfFailures([first, ...others]: readonly CertainFailure[], remedy: string): string | undefined {
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  return `nothing was submitted, because the graph is certain to fail: ${first.message}${more}: ${remedy}`
}
