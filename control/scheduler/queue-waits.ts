/**
 * Bounds how long attempts wait before their work starts (`queue_timeout`): for a slot, for a place in a runtime service, and
 * in the queue there.
 *
 * Each attempt has one clock for all of that, which begins when its task is ready. A restart begins it anew.
 */
import type { Failure } from '../rules/failure.ts'
import type { Task } from '../task/graph.ts'
import { type Due, DueQueue } from './due-queue.ts'

/** The failure of an attempt that has waited for longer. `waiting`: what it waited for at last, in words. */
export const waitedTooLong = (waiting?: string): Failure => ({
  ...{ code: 'timeout', message: 'task waited longer than queue_timeout', retryable: true },
  ...(waiting !== undefined && { details: { waiting } }),
})

export class QueueWaits {
  readonly #due = new Map<Task, Due<Task>>()
  readonly #queue: DueQueue<Task>

  /** `onOver` is called, by `step`, with each task that waits for too long. `wake` must call `step`. */
  constructor(onOver: (task: Task) => void, wake: () => void) {
    this.#queue = new DueQueue<Task>((task) => {
      this.#due.delete(task)
      onOver(task)
    }, wake)
  }

  /** `task` waits, maybe already. One that was cancelled during a backoff is queued once more, and waits for nothing. */
  begin(task: Task): void {
    const { queue_timeout: queueTimeout = 0 } = task.options
    if (queueTimeout > 0 && !this.#due.has(task) && !task.isTerminal && !task.neverRuns)
      this.#due.set(task, this.#queue.add(task, queueTimeout))
  }

  /** The work has started, or never will. */
  end(task: Task): void {
    const due = this.#due.get(task)
    if (due === undefined) return
    this.#due.delete(task)
    this.#queue.remove(due)
  }

  step(): boolean {
    return this.#queue.step()
  }

  /** Nothing ends any more. */
  stop(): void {
    this.#queue.stop()
  }
}
