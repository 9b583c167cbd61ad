/**
 * The tasks whose failure, certain as it may be, leaves the success of their graph possible: the failure is allowed, or
 * they may end without being executed. Pure.
 */
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { knownList } from './fan-out-review.ts'
import type { ReviewedMembers } from './group-review.ts'
import { dependencyOrder } from './order.ts'
import type { Parameters } from './parameters.ts'
import type { ValidTask } from './validate.ts'

/** Ids of these tasks. */
export function* spareTasks(
  { tasks, edges, groups }: ReviewedMembers,
  params?: Parameters,
): Steps<ReadonlySet<string>> {
  const spare = new Set<string>()
  let hasConditions = false
  yield* inRanges(tasks.length, (from, to) => {
    for (const task of tasks.slice(from, to)) {
      hasConditions ||= hasCondition(task)
      const group = groups.get(task)
      if (isSpare(task, params) || (group !== undefined && isSpare(group, params))) spare.add(task.id)
    }
  })
  if (!hasConditions || edges === undefined) return spare
  // Where all dependencies were skipped by their own rules, a task is skipped, too. Where one failed, the graph has failed.
  const { dependenciesStart, dependencies } = edges
  const mayBeSkipped = new Uint8Array(tasks.length)
  let steps = 0
  for (const position of yield* dependencyOrder(edges)) {
    const task = tasks[position]!
    const first = dependenciesStart[position]!
    const end = dependenciesStart[position + 1]!
    let mayAll = first < end && task.run_if !== 'always'
    for (let d = first; mayAll && d < end; d++) {
      mayAll = mayBeSkipped[dependencies[d]!] === 1
      if (isYieldDue(steps++)) yield
    }
    if (isYieldDue(steps++)) yield
    if (!mayAll && !hasCondition(task)) continue
    mayBeSkipped[position] = 1
    spare.add(task.id)
  }
  return spare
}

/** Whether its own rule may skip the task in a graph that succeeds. */
const hasCondition = ({ when, run_if }: ValidTask): boolean => when != null || run_if === 'failed'

/** A task with `cache` may take over an earlier outcome, one with `for_each` may have an empty list. */
const isSpare = (task: ValidTask, params: Parameters | undefined): boolean =>
  hasCondition(task) ||
  task.continue_on_error === true ||
  task.cache != null ||
  (task.for_each != null && !knownList(task, params)?.length)
