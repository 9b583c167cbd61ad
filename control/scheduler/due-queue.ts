/**
 * Items with a due time, in a binary heap with the item that is due first on top.
 *
 * One timer serves all items. With a timer per task, 50,000 tasks that failed at once became ready in one turn of the
 * event loop, which blocked requests for 0.6 s.
 */

/** `order` is the order of arrival. It decides between items that are due at the same time. */
type Waiting<T> = { readonly item: T; readonly dueAt: number; readonly order: number; at: number }

/** An item in the queue, for `remove`. */
export type Due<T> = Readonly<Waiting<T>>

const isBefore = (a: Waiting<unknown>, b: Waiting<unknown>): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order)

export interface Clock {
  /** Milliseconds. */
  readonly now: () => number
  /** The longest delay of a timer. For a longer wait, the timer is set again. */
  readonly maxTimerMs: number
}

const MONOTONIC: Clock = { now: () => performance.now(), maxTimerMs: 2 ** 31 - 1 }

/** Milliseconds between two looks at the wall clock, which may jump, also while the machine sleeps. */
const LOOK_MS = 10_000

/** For times of the wall clock. */
export const WALL: Clock = { now: Date.now, maxTimerMs: LOOK_MS }

export class DueQueue<T> {
  /** The heap. The children of element `i` are at `2i + 1` and `2i + 2`, and are not due before it. `at` is `i`. */
  readonly #heap: Waiting<T>[] = []
  readonly #onDue: (item: T) => void
  readonly #wake: () => void
  readonly #now: () => number
  readonly #maxTimerMs: number
  #added = 0
  #timer: Timer | undefined
  #timerDueAt = Number.POSITIVE_INFINITY
  #isStopped = false

  /** Calls `wake` when an item is due. `wake` must call `step`, which passes the item to `onDue`. */
  constructor(onDue: (item: T) => void, wake: () => void, { now, maxTimerMs }: Clock = MONOTONIC) {
    this.#onDue = onDue
    this.#wake = wake
    this.#now = now
    this.#maxTimerMs = maxTimerMs
  }

  add(item: T, delayMs: number): Due<T> {
    const waiting = { item, dueAt: this.#now() + delayMs, order: this.#added++, at: -1 }
    if (this.#isStopped) return waiting
    this.#heap.push(waiting)
    this.#rise(waiting, this.#heap.length - 1)
    this.#arm(waiting.dueAt)
    return waiting
  }

  /** Removes an item. Does nothing if the item has left the queue. */
  remove(due: Due<T>): void {
    if (this.#heap[due.at] === due) this.#take(due.at)
  }

  /** Passes on one due item. If none is due, sets the timer for the next one and returns false. */
  step(): boolean {
    const first = this.#heap[0]
    if (first === undefined) return false // the usual case
    if (first.dueAt > this.#now()) {
      this.#arm(first.dueAt)
      return false
    }
    this.#take(0)
    this.#onDue(first.item)
    return true
  }

  /** Removes all items. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#heap.length = 0
    this.#timerDueAt = Number.POSITIVE_INFINITY
  }

  #put(waiting: Waiting<T>, at: number): void {
    this.#heap[at] = waiting
    waiting.at = at
  }

  /** Puts `waiting` at `from`, or above the parents that are due later. */
  #rise(waiting: Waiting<T>, from: number): void {
    let at = from
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(waiting, this.#heap[parent]!); parent = (at - 1) >> 1) {
      this.#put(this.#heap[parent]!, at)
      at = parent
    }
    this.#put(waiting, at)
  }

  /** Removes the element at `at`. The last element takes its place, and moves down or up from there. */
  #take(at: number): void {
    const heap = this.#heap
    heap[at]!.at = -1
    const last = heap.pop()!
    if (at === heap.length) return
    let place = at
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      this.#put(heap[child]!, place)
      place = child
    }
    this.#rise(last, place)
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
      Math.min(Math.max(0, Math.ceil(dueAt - this.#now())), this.#maxTimerMs),
    )
  }
}
