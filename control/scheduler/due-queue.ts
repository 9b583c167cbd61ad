/**
 * Things that wait for their time, in a binary heap: the one that is due first is on top.
 *
 * One timer serves all of them. With a timer for each task, 50,000 tasks that failed at once became ready in one turn and
 * held up other requests for 0.6 s.
 */

/** `order` is the order in which things came, for those that are due at the same time. */
type Waiting<T> = { readonly item: T; readonly dueAt: number; readonly order: number; at: number }

/** What `add` returns, to be able to remove the thing before it is due. */
export type Due<T> = Readonly<Waiting<T>>

const isBefore = (a: Waiting<unknown>, b: Waiting<unknown>): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order)

export class DueQueue<T> {
  /** The children of the element at `i` are at `2i + 1` and `2i + 2`, and not before it. Elements know where they are. */
  readonly #heap: Waiting<T>[] = []
  readonly #onDue: (item: T) => void
  readonly #wake: () => void
  #added = 0
  #timer: Timer | undefined
  #timerDueAt = Number.POSITIVE_INFINITY
  #isStopped = false

  /** `wake` is called when something is due; it should call `step`, which passes it to `onDue`. */
  constructor(onDue: (item: T) => void, wake: () => void) {
    this.#onDue = onDue
    this.#wake = wake
  }

  add(item: T, delayMs: number): Due<T> {
    const waiting = { item, dueAt: performance.now() + delayMs, order: this.#added++, at: -1 }
    if (this.#isStopped) return waiting
    this.#heap.push(waiting)
    this.#rise(waiting, this.#heap.length - 1)
    this.#arm(waiting.dueAt)
    return waiting
  }

  /** It is not due any more. Nothing happens if it has left the queue. */
  remove(due: Due<T>): void {
    if (this.#heap[due.at] === due) this.#take(due.at)
  }

  /** Passes on one thing that is due, or sets the timer for the next one; false when none is due. */
  step(): boolean {
    const first = this.#heap[0]
    if (first === undefined) return false // asked at every step, seldom needed
    if (first.dueAt > performance.now()) {
      this.#arm(first.dueAt)
      return false
    }
    this.#take(0)
    this.#onDue(first.item)
    return true
  }

  /** Forgets everything; nothing is due any more. */
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

  /** Puts `waiting` at `at`, or above where it is due before its parents. */
  #rise(waiting: Waiting<T>, from: number): void {
    let at = from
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(waiting, this.#heap[parent]!); parent = (at - 1) >> 1) {
      this.#put(this.#heap[parent]!, at)
      at = parent
    }
    this.#put(waiting, at)
  }

  /** Removes the element at `at`. The last one takes its place, and from there goes down or up. */
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
      Math.min(Math.max(0, Math.ceil(dueAt - performance.now())), MAX_TIMER_MS),
    )
  }
}

/** The longest delay that a timer takes; after it the timer is set again. */
const MAX_TIMER_MS = 2 ** 31 - 1
