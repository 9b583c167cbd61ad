/** The time limits of the tasks of a dry run. */

import { APPROVAL_TYPE } from '../../shared/contract/approval.ts'
import { MAX_DRY_RUN_TIME_LIMITS, type TimeLimits } from '../../shared/contract/graph-dry-run.ts'
import { WAIT_TYPE } from '../../shared/contract/signal.ts'
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { ValidTask } from '../rules/validate.ts'

export interface FoundTimeLimits {
  /** Undefined if no task has a limit. */
  readonly byTask: Readonly<Record<string, TimeLimits>> | undefined
  /** Whether more tasks have limits. */
  readonly isTruncated: boolean
}

export function* timeLimitsOf(tasks: readonly ValidTask[]): Steps<FoundTimeLimits> {
  const found: [string, TimeLimits][] = []
  for (let i = 0; i < tasks.length; i++) {
    const limits = limitsOf(tasks[i]!)
    if (isYieldDue(i)) yield
    if (limits === undefined) continue
    if (found.length === MAX_DRY_RUN_TIME_LIMITS) return { byTask: Object.fromEntries(found), isTruncated: true }
    found.push([tasks[i]!.id, limits])
  }
  return { byTask: found.length === 0 ? undefined : Object.fromEntries(found), isTruncated: false }
}

/** Undefined if neither clock has a limit. An approval and a wait have no queue_timeout: they wait from when they are ready. */
function limitsOf({ type, timeout, queue_timeout }: ValidTask): TimeLimits | undefined {
  const waits = type === APPROVAL_TYPE || type === WAIT_TYPE ? 0 : (queue_timeout ?? 0)
  const runs = timeout ?? 0
  if (waits <= 0 && runs <= 0) return undefined
  return { ...(waits > 0 && { queue_timeout: waits }), ...(runs > 0 && { timeout: runs }) }
}
