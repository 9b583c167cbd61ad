/**
 * Skips the tasks that depend on a lost one, and those that depend on them.
 *
 * A task is lost when it ends without success, or when its record is deleted before it runs. The cascade skips its
 * dependents one by one in the scheduler's turns. So the loss of 100,000 tasks delays no request and needs no recursion.
 */
import type { Task } from '../graph/graph.ts'
import { type LossReason, skipReason } from '../graph/transitions.ts'
import { Fifo } from './fifo.ts'

/** Collects the tasks that are skipped because of one cancel, for a caller that waits for the last of them. */
export class SkipReport {
  readonly #skipped: Task[] = []
  readonly #done = Promise.withResolvers<Task[]>()
  /** Lost tasks whose dependents are still being skipped; one more until `close`. */
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

/** A lost task, and how many of its dependents were looked at. */
type Loss = { readonly task: Task; readonly reason: LossReason; readonly report: SkipReport | undefined; next: number }

/** Skips `task` with this `error`. Tasks that are lost by that belong to the same report. */
type Skip = (task: Task, error: string, report: SkipReport | undefined) => void

export class SkipCascade {
  readonly #losses = new Fifo<Loss>()
  readonly #skip: Skip

  constructor(skip: Skip) {
    this.#skip = skip
  }

  add(task: Task, reason: LossReason, report?: SkipReport): void {
    report?.opened()
    this.#losses.push({ task, reason, report, next: 0 })
  }

  /** Skips one dependent of a lost task, if it waits; false when nothing is left to do. */
  step(): boolean {
    const loss = this.#losses.peek()
    if (loss === undefined) return false
    const { task, reason, report } = loss
    const { graph } = task
    if (loss.next < graph.dependentCount(task)) {
      const dependent = graph.dependent(task, loss.next++)
      const isWaiting = dependent.status === 'pending' && !dependent.isDeleted
      if (isWaiting) this.#skip(dependent, skipReason(task.id, reason), report)
      return true
    }
    this.#losses.shift()
    report?.closed()
    return true
  }
}
