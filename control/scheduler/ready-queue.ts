/** The queue of tasks that are ready to run, first in, first out. It is unbounded. */
import type { Task } from '../task/graph.ts'

/** Maximum tasks that count as queued. Further tasks count as a backlog. Source: spec, Limits A. */
export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue {
  readonly #onPush: (task: Task) => void
  /** In the order in which they came. A task that waits for too long leaves at once, wherever it stands. */
  readonly #tasks = new Set<Task>()
  /** Stands behind the taken tasks. It never ends, because it is asked only while there are others. */
  readonly #next = this.#tasks.values()

  constructor(onPush: (task: Task) => void = () => {}) {
    this.#onPush = onPush
  }

  /** Number of queued tasks without the backlog. */
  get length(): number {
    return Math.min(this.#tasks.size, READY_QUEUE_CAPACITY)
  }

  push(task: Task): void {
    this.#tasks.add(task)
    this.#onPush(task)
  }

  shift(): Task | undefined {
    if (this.#tasks.size === 0) return undefined
    const task = this.#next.next().value!
    this.#tasks.delete(task)
    return task
  }

  /** `task` is queued no longer; it may be pushed again. */
  withdraw(task: Task): void {
    this.#tasks.delete(task)
  }
}
