/** Limits the number of concurrent attempts. Tasks in backoff or with open dependencies hold no slot. */
import type { StopReason } from '../executors/executor.ts'
import type { Task } from '../graph/graph.ts'
import type { Attempt, AttemptOutcome } from './attempt.ts'

export class Slots {
  readonly #count: number
  readonly #attempts = new Map<Task, Attempt>()
  /** The attempt that is being started. If its executor answers at once, it never takes a slot. */
  #starting: Attempt | undefined
  #whenIdle: (() => void) | undefined

  constructor(count: number) {
    this.#count = count
  }

  /** Number of attempts with a slot, and number of slots. */
  get use(): { readonly taken: number; readonly count: number } {
    return { taken: this.#attempts.size, count: this.#count }
  }

  get hasFree(): boolean {
    return this.#attempts.size < this.#count
  }

  /** Tasks whose attempts hold a slot. */
  get tasks(): Iterable<Task> {
    return this.#attempts.keys()
  }

  /** The attempt of `task` that is being started or has not ended. */
  attemptOf(task: Task): Attempt | undefined {
    return this.#starting?.task === task ? this.#starting : this.#attempts.get(task)
  }

  /** Runs an attempt, which takes a slot if its outcome is a promise. */
  run(attempt: Attempt): AttemptOutcome | Promise<AttemptOutcome> {
    this.#starting = attempt
    const outcome = attempt.run()
    this.#starting = undefined
    if (outcome instanceof Promise) this.take(attempt)
    return outcome
  }

  take(attempt: Attempt): void {
    this.#attempts.set(attempt.task, attempt)
  }

  /** Called at the end of each attempt, with or without a slot. */
  free(task: Task): void {
    if (this.#attempts.size === 0) return
    this.#attempts.delete(task)
    if (this.#attempts.size === 0) this.#whenIdle?.()
  }

  stopAll(reason: StopReason): void {
    for (const attempt of this.#attempts.values()) attempt.stop(reason)
  }

  /** Resolves when all slots are free. */
  async idle(): Promise<void> {
    if (this.#attempts.size === 0) return
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve
    })
  }
}
