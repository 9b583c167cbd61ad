/**
 * Bounds how long attempts wait before their work starts (`queue_timeout`): for a slot, for a place in a runtime service, and
 * in the queue there.
 *
 * Each attempt has one clock for all of that, which begins when its task is ready. A restart begins it anew.
 */
import type { Failure } from '../rules/failure.ts'
import type { Task } from '../task/graph.ts'
import { DueTasks } from './due-tasks.ts'

/** The failure of an attempt that has waited for longer. `waiting`: what it waited for at last, in words. */
export const waitedTooLong = (waiting?: string): Failure => ({
  ...{ code: 'timeout', message: 'task waited longer than queue_timeout', retryable: true },
  ...(waiting !== undefined && { details: { waiting } }),
})

export class QueueWaits extends DueTasks {
  /** `task` waits, maybe already. One that was cancelled during a backoff is queued once more, and waits for nothing. */
  begin(task: Task): void {
    const { queue_timeout: queueTimeout = 0 } = task.options
    if (queueTimeout > 0 && !task.isTerminal && !task.neverRuns) this.add(task, queueTimeout)
  }
}
