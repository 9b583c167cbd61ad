/**
 * What the loss of a task takes along: those that depend on it are skipped, and those that depend on them.
 *
 * A task that ended without success, or whose record was deleted before it ran, is noted here; its dependents are then
 * skipped one by one, in the scheduler's turns, so that a loss of 100,000 tasks holds up nobody and needs no recursion.
 */
import type { Task } from '../graph/graph.ts'
import { type LossReason, skipReason } from '../graph/transitions.ts'
import { Fifo } from './ready-queue.ts'

/** A task whose dependents are being skipped, and how far that has come. */
type Loss = { readonly task: Task; readonly reason: LossReason; readonly cascade: Cascade | undefined; next: number }

/** All losses that follow from one, for somebody who waits for the last of them. */
export interface Cascade {
  readonly skipped: Task[]
  /** Losses of it that are not worked off yet. */
  open: number
  readonly end: (skipped: Task[]) => void
}

/** Skips `task` with this `error`; what that loses belongs to the same cascade. */
type Skip = (task: Task, error: string, cascade: Cascade | undefined) => void

export class Losses {
  readonly #losses = new Fifo<Loss>()
  readonly #skip: Skip

  constructor(skip: Skip) {
    this.#skip = skip
  }

  add(task: Task, reason: LossReason, cascade?: Cascade): void {
    if (cascade !== undefined) cascade.open++
    this.#losses.push({ task, reason, cascade, next: 0 })
  }

  /** Sees to one dependent of a lost task; false when there is nothing left to do. */
  step(): boolean {
    const loss = this.#losses.peek()
    if (loss === undefined) return false
    const { task, reason, cascade } = loss
    const { graph } = task
    if (loss.next < graph.dependentCount(task)) {
      const dependent = graph.dependent(task, loss.next++)
      const isWaiting = dependent.status === 'pending' && !dependent.isDeleted
      if (isWaiting) this.#skip(dependent, skipReason(task.id, reason), cascade)
      return true
    }
    this.#losses.shift()
    if (cascade !== undefined && --cascade.open === 0) cascade.end(cascade.skipped)
    return true
  }
}
