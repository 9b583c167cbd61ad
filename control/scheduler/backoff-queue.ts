/**
 * Tasks that wait for their next attempt, in a binary heap: the task that is due first is on top.
 *
 * One timer serves all of them. A task that waits here holds no slot. With a timer for each task, 50,000 tasks that failed
 * at once became ready in one turn and held up other requests for 0.6 s.
 */
import type { Task } from '../graph/graph.ts'
import type { ReadyQueue } from './ready-queue.ts'

/** `order` is the order in which tasks came, for those that are due at the same time. */
type Waiting = { readonly task: Task; readonly dueAt: number; readonly order: number }

const isBefore = (a: Waiting, b: Waiting): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order)

export class BackoffQueue {
  /** The children of the element at `i` are at `2i + 1` and `2i + 2`, and not before it. */
  readonly #heap: Waiting[] = []
  readonly #ready: Pick<ReadyQueue, 'push'>
  readonly #wake: () => void
  #added = 0
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
    const dueAt = performance.now() + delayMs
    this.#push({ task, dueAt, order: this.#added++ })
    this.#arm(dueAt)
  }

  /** Queues one task that is due, or sets the timer for the next one; false when none is due. */
  step(): boolean {
    const first = this.#heap[0]
    if (first === undefined) return false // asked at every step, seldom needed
    if (first.dueAt > performance.now()) {
      this.#arm(first.dueAt)
      return false
    }
    this.#dropFirst()
    this.#ready.push(first.task)
    return true
  }

  /** Forgets all tasks; no task is due any more. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#heap.length = 0
    this.#timerDueAt = Number.POSITIVE_INFINITY
  }

  #push(waiting: Waiting): void {
    const heap = this.#heap
    let at = heap.length
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(waiting, heap[parent]!); parent = (at - 1) >> 1) {
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = waiting
  }

  #dropFirst(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
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
      Math.min(Math.max(0, Math.ceil(dueAt - performance.now())), MAX_TIMER_MS),
    )
  }
}

/** The longest delay that a timer takes; after it the timer is set again. */
const MAX_TIMER_MS = 2 ** 31 - 1
