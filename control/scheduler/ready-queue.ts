/** The queue of tasks that are ready to run, first in, first out. It is unbounded. */
import type { Task } from '../graph/graph.ts'
import { Fifo } from './fifo.ts'

/** Maximum tasks that count as queued. Further tasks count as a backlog. Source: spec, Limits A. */
export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue extends Fifo<Task> {
  readonly #onPush: (task: Task) => void
  /** How many places of a task are void. They are the first ones of that task. */
  readonly #withdrawn = new Map<Task, number>()
  #withdrawnCount = 0

  constructor(onPush: (task: Task) => void = () => {}) {
    super()
    this.#onPush = onPush
  }

  /** Number of queued tasks without the backlog. */
  override get length(): number {
    return Math.min(super.length - this.#withdrawnCount, READY_QUEUE_CAPACITY)
  }

  override push(task: Task): void {
    super.push(task)
    this.#onPush(task)
  }

  override shift(): Task | undefined {
    for (;;) {
      const task = super.shift()
      const count = task && this.#withdrawn.get(task)
      if (task === undefined || count === undefined) return task
      this.#withdrawnCount--
      if (count > 1) this.#withdrawn.set(task, count - 1)
      else this.#withdrawn.delete(task)
    }
  }

  /** `task` is queued no longer; it may be pushed again. */
  withdraw(task: Task): void {
    this.#withdrawnCount++
    this.#withdrawn.set(task, (this.#withdrawn.get(task) ?? 0) + 1)
  }
}
