/** Collects the tasks that are skipped because of one cancel. */
import type { Task } from '../task/graph.ts'

export class SkipReport {
  readonly #skipped: Task[] = []
  readonly #done = Promise.withResolvers<Task[]>()
  /** Number of ended tasks whose dependents are still being notified, plus one until `close`. */
  #open = 1

  /** Resolves with the skipped tasks once all are known. */
  get skipped(): Promise<Task[]> {
    return this.#done.promise
  }

  add(task: Task): void {
    this.#skipped.push(task)
  }

  opened(): void {
    this.#open++
  }

  closed(): void {
    if (--this.#open === 0) this.#done.resolve(this.#skipped)
  }
}
