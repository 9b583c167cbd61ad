/** A literal version of the waiting queue: one list, one counter per task, and a full scan each time. */

import type { Ledger } from '../../runtime/ledger/ledger.ts'
import type { WaitingTask } from '../../runtime/tasks/waiting-queue.ts'

export interface Waiting {
  readonly task: WaitingTask
  overtaken: number
}

export class NaiveWaitingQueue {
  waiting: Waiting[] = []

  constructor(
    readonly ledger: Ledger,
    readonly maxOvertaken: number,
  ) {}

  add(task: WaitingTask): void {
    const at = this.waiting.findIndex(({ task: { priority = 0 } }) => priority < (task.priority ?? 0))
    this.waiting.splice(at < 0 ? this.waiting.length : at, 0, { task, overtaken: 0 })
  }

  remove(taskId: string): WaitingTask | undefined {
    const at = this.waiting.findIndex(({ task }) => task.task_id === taskId)
    return at < 0 ? undefined : this.waiting.splice(at, 1)[0]!.task
  }

  /** The quota that a task counts toward, if any. */
  #laneOf({ task }: Waiting): string | undefined {
    return task.tenant !== undefined && this.ledger.quotas.has(task.tenant) ? task.tenant : undefined
  }

  /** Whether nobody who competes with it may overtake it any more. */
  #isDue(waiting: Waiting): boolean {
    return waiting.overtaken >= this.maxOvertaken
  }

  /** Whether a task is held by its quota, or waits behind one of its lane that is and that is due. */
  #isHeldByLane(waiting: Waiting, at: number): boolean {
    if (this.ledger.holdOn(waiting.task) === 'quota') return true
    return this.waiting
      .slice(0, at)
      .some(
        (earlier) =>
          this.#laneOf(earlier) === this.#laneOf(waiting) &&
          this.#isDue(earlier) &&
          this.ledger.holdOn(earlier.task) === 'quota',
      )
  }

  takeNext(): WaitingTask | undefined {
    const isHeldByLane = this.waiting.map((waiting, at) => this.#isHeldByLane(waiting, at))
    for (const [at, waiting] of this.waiting.entries()) {
      if (isHeldByLane[at]) continue
      const hold = this.ledger.holdOn(waiting.task)
      if (hold === 'capacity' && this.#isDue(waiting)) return undefined
      if (hold !== null) continue
      for (const [i, earlier] of this.waiting.slice(0, at).entries()) {
        if (!isHeldByLane[i] || this.#laneOf(earlier) === this.#laneOf(waiting)) earlier.overtaken++
      }
      this.waiting.splice(at, 1)
      return waiting.task
    }
    return undefined
  }
}
