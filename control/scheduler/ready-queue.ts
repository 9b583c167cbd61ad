/**
 * The queue of tasks that are ready to run: the highest priority first, and first in, first out among those with the same.
 * It is unbounded.
 */
import type { Task } from '../task/graph.ts'

/** Maximum tasks that count as queued. Further tasks count as a backlog. Source: spec, Limits A. */
export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue {
  readonly #onPush: (task: Task) => void
  /** One for each priority that a task had, the highest first. */
  readonly #lines: Line[] = [new Line(0)]
  #size = 0

  constructor(onPush: (task: Task) => void = () => {}) {
    this.#onPush = onPush
  }

  /** Number of queued tasks without the backlog. */
  get length(): number {
    return Math.min(this.#size, READY_QUEUE_CAPACITY)
  }

  push(task: Task): void {
    const { tasks } = this.#lineOf(task.priority)
    this.#size -= tasks.size
    this.#size += tasks.add(task).size
    this.#onPush(task)
  }

  shift(): Task | undefined {
    if (this.#size === 0) return undefined
    this.#size--
    return this.#lines.find(({ tasks }) => tasks.size > 0)!.shift()
  }

  /** `task` is queued no longer; it may be pushed again. */
  withdraw(task: Task): void {
    if (this.#lineOf(task.priority).tasks.delete(task)) this.#size--
  }

  #lineOf(priority: number): Line {
    let at = 0
    while (at < this.#lines.length && this.#lines[at]!.priority > priority) at++
    const found = this.#lines[at]
    if (found?.priority === priority) return found
    const line = new Line(priority)
    this.#lines.splice(at, 0, line)
    return line
  }
}

class Line {
  readonly priority: number
  /** In the order in which they came. A task that waits for too long leaves at once, wherever it stands. */
  readonly tasks = new Set<Task>()
  /** Stands behind the taken tasks. It never ends, because it is asked only while there are others. */
  readonly #next = this.tasks.values()

  constructor(priority: number) {
    this.priority = priority
  }

  shift(): Task {
    const task = this.#next.next().value!
    this.tasks.delete(task)
    return task
  }
}
