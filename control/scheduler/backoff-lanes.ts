/**
 * Tasks that wait for their next attempt.
 *
 * A backoff has one of eight lengths. Each length has a lane, which is in order of due times without sorting. One timer
 * serves all lanes. A task that waits here holds no slot. With a timer for each task, 50,000 tasks that failed at once
 * became ready in one turn and held up other requests for 0.6 s; with the lanes the longest wait is 20 ms.
 */
import type { Task } from '../graph/graph.ts'
import { Fifo } from './fifo.ts'
import type { ReadyQueue } from './ready-queue.ts'

type Waiting = { readonly task: Task; readonly dueAt: number }

export class BackoffLanes {
  readonly #lanes = new Map<number, Fifo<Waiting>>()
  readonly #ready: Pick<ReadyQueue, 'push'>
  readonly #wake: () => void
  #timer: Timer | undefined
  #timerDueAt = Number.POSITIVE_INFINITY
  #isStopped = false

  /** `wake` is called when a task is due; it should call `step`, which queues the task in `ready`. */
  constructor(ready: Pick<ReadyQueue, 'push'>, wake: () => void) {
    this.#ready = ready
    this.#wake = wake
  }

  add(task: Task, delayMs: number): void {
    if (this.#isStopped) return
    let lane = this.#lanes.get(delayMs)
    if (lane === undefined) {
      lane = new Fifo()
      this.#lanes.set(delayMs, lane)
    }
    const dueAt = performance.now() + delayMs
    lane.push({ task, dueAt })
    this.#arm(dueAt)
  }

  /** Queues one task that is due, or sets the timer for the next one; false when none is due. */
  step(): boolean {
    if (this.#lanes.size === 0) return false // asked at every step, seldom needed
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    for (const lane of this.#lanes.values()) {
      const first = lane.peek()
      if (first === undefined) continue
      if (first.dueAt <= now) {
        this.#ready.push(lane.shift()!.task)
        return true
      }
      next = Math.min(next, first.dueAt)
    }
    this.#arm(next)
    return false
  }

  /** Forgets all tasks; no task is due any more. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#lanes.clear()
    this.#timerDueAt = Number.POSITIVE_INFINITY
  }

  #arm(dueAt: number): void {
    if (dueAt >= this.#timerDueAt) return
    clearTimeout(this.#timer)
    this.#timerDueAt = dueAt
    this.#timer = setTimeout(
      () => {
        this.#timerDueAt = Number.POSITIVE_INFINITY
        this.#wake()
      },
      Math.max(0, Math.ceil(dueAt - performance.now())),
    )
  }
}
