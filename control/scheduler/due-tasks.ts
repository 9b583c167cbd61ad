/** Tasks, each with one due time. A task may leave before it. */
import type { Task } from '../task/graph.ts'
import { type Clock, type Due, DueQueue } from './due-queue.ts'

export class DueTasks {
  readonly #due = new Map<Task, Due<Task>>()
  readonly #queue: DueQueue<Task>

  /** `onDue` is called, by `step`, with each task that is due. `wake` must call `step`. */
  constructor(onDue: (task: Task) => void, wake: () => void, clock?: Clock) {
    const leave = (task: Task) => {
      this.#due.delete(task)
      onDue(task)
    }
    this.#queue = new DueQueue<Task>(leave, wake, clock)
  }

  /** A task that has a due time keeps it. */
  add(task: Task, delayMs: number): void {
    if (!this.#due.has(task)) this.#due.set(task, this.#queue.add(task, delayMs))
  }

  get tasks(): Iterable<Task> {
    return this.#due.keys()
  }

  withdraw(task: Task): void {
    const due = this.#due.get(task)
    if (due === undefined) return
    this.#due.delete(task)
    this.#queue.remove(due)
  }

  /** As that of the queue. */
  step(): boolean {
    return this.#queue.step()
  }

  /** No task is due any more. */
  stop(): void {
    this.#queue.stop()
  }
}
