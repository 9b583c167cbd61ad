/**
 * Limits the number of concurrent attempts. Tasks in backoff or with open dependencies hold no slot, nor do attempts that
 * stand by.
 */
import type { StopReason } from '../executors/executor.ts'
import type { Task } from '../task/graph.ts'
import type { Attempt, AttemptOutcome } from './attempt.ts'

/** Attempts that stand by without a slot. Further ones keep theirs. */
export const MAX_STANDING_BY = 1_000

export class Slots {
  readonly #count: number
  readonly #attempts = new Map<Task, Attempt>()
  /** The attempt that is being started. If its executor answers at once, it never takes a slot. */
  #starting: Attempt | undefined
  #whenIdle: (() => void) | undefined
  /** Tasks whose attempts gave their slots back, and wait for something outside of this service. */
  readonly #standingBy = new Set<Task>()
  /** Tasks that wait for a slot again, in the order in which they came. */
  readonly #resuming = new Map<Task, () => void>()

  constructor(count: number) {
    this.#count = count
  }

  /** Number of attempts with a slot, and number of slots. */
  get use(): { readonly taken: number; readonly count: number } {
    return { taken: this.#taken, count: this.#count }
  }

  /** Whether an attempt may start. Those that resume come first. */
  get hasFree(): boolean {
    return this.#taken < this.#count && this.#resuming.size === 0
  }

  get #taken(): number {
    return this.#attempts.size - this.#standingBy.size
  }

  /** Gives the slot of an attempt back for now, also while it is being started. False if it keeps the slot. */
  standBy(task: Task): boolean {
    if (this.attemptOf(task) === undefined || this.#standingBy.size >= MAX_STANDING_BY) return false
    this.#standingBy.add(task)
    return true
  }

  /** Resolves once an attempt that stood by has a slot again. */
  resume(task: Task): Promise<void> {
    if (!this.#standingBy.has(task)) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resuming.set(task, resolve)
    this.#resumeNext()
    return promise
  }

  #resumeNext(): void {
    for (const [task, resolve] of this.#resuming) {
      if (this.#taken >= this.#count) return
      this.#resuming.delete(task)
      this.#standingBy.delete(task)
      resolve()
    }
  }

  /** Tasks whose attempts execute or stand by. */
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
    this.#standingBy.delete(task)
    this.#resuming.delete(task)
    this.#resumeNext()
    if (this.#attempts.size === 0) this.#whenIdle?.()
  }

  /** Stops the attempts that stand by. */
  stopStandingBy(reason: StopReason): void {
    for (const task of [...this.#standingBy]) this.#attempts.get(task)?.stop(reason)
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
