/** What a task with `for_each`, or a group, amounts to once all of its children have ended. Pure. */

import type { Failure } from '../rules/failure.ts'
import type { FanOut } from './fan-out.ts'
import type { Task } from './graph.ts'

/** Children that an error text names. */
const MAX_NAMED = 5

const isMeant = ({ status, continuesOnError, isDeleted }: Task): boolean =>
  !isDeleted && (status === 'success' || status === 'skipped' || (status === 'failed' && continuesOnError))

/** How a child did not succeed, and how the error text begins to name such children. */
const LOSSES = ['failed', 'cancelled', 'deleted'] as const
type Loss = (typeof LOSSES)[number]

/**
 * Why the parent fails: `3 of 20 failed: map[1], map[7], map[9]`. Undefined if all children succeeded. A child whose record
 * was deleted has no result, so it counts as not succeeded, however it ended. A member of a group may be skipped: it is by its
 * own rule, or because of another that counts.
 */
export function fanOutFailure(fanOut: FanOut<Task>): Failure | undefined {
  const lost: Record<Loss, string[]> = { failed: [], cancelled: [], deleted: [] }
  const counts: Record<Loss, number> = { failed: 0, cancelled: 0, deleted: 0 }
  let code: Failure['code'] | undefined
  for (let i = 0; i < fanOut.count; i++) {
    const child = fanOut.child(i)
    if (isMeant(child)) continue
    const loss = child.isDeleted ? 'deleted' : child.status === 'failed' ? 'failed' : 'cancelled'
    if (loss === 'failed') code ??= child.rare.failure?.code
    if (++counts[loss] <= MAX_NAMED) lost[loss].push(child.id)
  }
  const texts = LOSSES.flatMap((loss) =>
    counts[loss] === 0
      ? []
      : `${counts[loss]} of ${fanOut.count} ${loss}: ${lost[loss].join(', ')}${counts[loss] > MAX_NAMED ? ', …' : ''}`,
  )
  return texts.length === 0 ? undefined : { code: code ?? 'cancelled', message: texts.join('; ') }
}
