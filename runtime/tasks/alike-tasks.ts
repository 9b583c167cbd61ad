/**
 * Waiting tasks that ask for the same, in the order in which they came. If the first of them cannot start, none can.
 *
 * Counting for each task how often it was overtaken would cost too much. A task that starts overtakes all that came
 * before it, so one mark at the last of those counts for all of them: a task was overtaken as often as there are marks
 * at it and behind it, and the first task as often as there are marks.
 */
import type { Asking, Hold } from '../ledger/ledger.ts'

interface Entry<T> {
  readonly task: T
  readonly ticket: number
  marks: number
}

/** Empty entries at the front before the others are moved up. */
const EMPTY_ENTRIES_BEFORE_MOVE = 1024

export class AlikeTasks<T> {
  readonly asking: Asking
  /** The tenant whose quota counts, if one does. */
  readonly lane: string | undefined
  /** The cause that holds the first task, if the current search knows it. */
  hold: Hold | null = null
  #entries: Entry<T>[] = []
  #front = 0
  #marks = 0

  constructor(asking: Asking, lane: string | undefined) {
    this.asking = asking
    this.lane = lane
  }

  get length(): number {
    return this.#entries.length - this.#front
  }

  /** The number that the first task drew when it came. Numbers grow. There must be a task. */
  get firstTicket(): number {
    return this.#entries[this.#front]!.ticket
  }

  /** Number of times that the first task was overtaken. */
  get overtaken(): number {
    return this.#marks
  }

  push(task: T, ticket: number): void {
    this.#entries.push({ task, ticket, marks: 0 })
  }

  /** Takes out the first task. There must be one. */
  shift(): T {
    const { task, marks } = this.#entries[this.#front]!
    this.#marks -= marks
    this.#entries[this.#front++] = undefined as unknown as Entry<T>
    if (this.#front >= EMPTY_ENTRIES_BEFORE_MOVE && this.#front * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#front)
      this.#front = 0
    }
    return task
  }

  /** Takes out the task that drew `ticket`, wherever it stands. It must be here. */
  remove(ticket: number): T {
    const at = this.#indexFrom(ticket)
    if (at === this.#front) return this.shift()
    const [gone] = this.#entries.splice(at, 1)
    this.#entries[at - 1]!.marks += gone!.marks
    return gone!.task
  }

  /** All tasks that came before `ticket` were overtaken once more. */
  overtake(ticket: number): void {
    const end = this.#indexFrom(ticket)
    if (end === this.#front) return
    this.#entries[end - 1]!.marks++
    this.#marks++
  }

  /** The index of the first entry whose ticket is not below `ticket`. */
  #indexFrom(ticket: number): number {
    let low = this.#front
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#entries[middle]!.ticket < ticket) low = middle + 1
      else high = middle
    }
    return low
  }
}
