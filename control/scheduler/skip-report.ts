/** Collects the tasks that are skipped because of one cancel, for a caller that waits for the last of them. */
import type { Task } from '../graph/graph.ts'

export class SkipReport {
  readonly #skipped: Task[] = []
  readonly #done = Promise.withResolvers<Task[]>()
  /** Ended tasks whose dependents are still being told; one more until `close`. */
  #open = 1

  /** Resolves with the skipped tasks once the last one is known. */
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
