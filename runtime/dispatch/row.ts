/**
 * Waiting tasks that ask for the same, in the order in which they came. If the first of them cannot start, none can.
 *
 * How often each was overtaken is known without counting it for each: who starts overtakes all who came before it, so one
 * mark at the last of these stands for all of them. A task was overtaken as often as there are marks at it and behind it;
 * the first, therefore, as often as there are marks.
 */
import type { Asking, Hold } from '../ledger/ledger.ts'

interface Place<T> {
  readonly task: T
  readonly ticket: number
  marks: number
}

/** Places that have become empty at the front before the rest is moved up. */
const EMPTY_PLACES_BEFORE_MOVE = 1024

export class Row<T> {
  readonly asking: Asking
  /** The tenant whose quota counts, if one does. */
  readonly lane: string | undefined
  /** What holds the first task, as far as the search that is under way has found out. */
  hold: Hold | null = null
  #places: Place<T>[] = []
  #front = 0
  #marks = 0

  constructor(asking: Asking, lane: string | undefined) {
    this.asking = asking
    this.lane = lane
  }

  get length(): number {
    return this.#places.length - this.#front
  }

  /** The number that the first task drew when it came; numbers grow. Only for a row that is not empty. */
  get firstTicket(): number {
    return this.#places[this.#front]!.ticket
  }

  /** How often the first task was overtaken. */
  get overtaken(): number {
    return this.#marks
  }

  push(task: T, ticket: number): void {
    this.#places.push({ task, ticket, marks: 0 })
  }

  /** Takes out the first task. Only for a row that is not empty. */
  shift(): T {
    const { task, marks } = this.#places[this.#front]!
    this.#marks -= marks
    this.#places[this.#front++] = undefined as unknown as Place<T>
    if (this.#front >= EMPTY_PLACES_BEFORE_MOVE && this.#front * 2 >= this.#places.length) {
      this.#places = this.#places.slice(this.#front)
      this.#front = 0
    }
    return task
  }

  /** Takes out the task that drew `ticket`, wherever it stands. Only for one that is here. */
  remove(ticket: number): T {
    const at = this.#countBefore(ticket)
    if (at === this.#front) return this.shift()
    const [gone] = this.#places.splice(at, 1)
    this.#places[at - 1]!.marks += gone!.marks
    return gone!.task
  }

  /** All who came before `ticket` were overtaken once more. */
  overtake(ticket: number): void {
    const end = this.#countBefore(ticket)
    if (end === this.#front) return
    this.#places[end - 1]!.marks++
    this.#marks++
  }

  /** The index of the first place whose ticket is not below `ticket`. */
  #countBefore(ticket: number): number {
    let low = this.#front
    let high = this.#places.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#places[middle]!.ticket < ticket) low = middle + 1
      else high = middle
    }
    return low
  }
}
