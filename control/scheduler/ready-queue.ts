/**
 * Tasks that could run now, first in, first out.
 *
 * At most `READY_QUEUE_CAPACITY` are queued; those beyond wait in a backlog and enter in order as places become free.
 * Nothing is refused or lost. Source: spec, Limits A.
 */
import type { Task } from '../graph/graph.ts'

export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue {
  readonly #queue: (Task | undefined)[] = new Array(READY_QUEUE_CAPACITY)
  #head = 0
  #length = 0
  readonly #backlog = new Fifo<Task>()

  /** Queued tasks, without the backlog. */
  get length(): number {
    return this.#length
  }

  push(task: Task): void {
    if (this.#length < READY_QUEUE_CAPACITY) this.#append(task)
    else this.#backlog.push(task)
  }

  shift(): Task | undefined {
    if (this.#length === 0) return undefined
    const task = this.#queue[this.#head]
    this.#queue[this.#head] = undefined
    this.#head = (this.#head + 1) % READY_QUEUE_CAPACITY
    this.#length--
    const next = this.#backlog.shift()
    if (next !== undefined) this.#append(next)
    return task
  }

  #append(task: Task): void {
    this.#queue[(this.#head + this.#length) % READY_QUEUE_CAPACITY] = task
    this.#length++
  }
}

/** A queue without a bound, in constant time per operation. */
export class Fifo<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined as T
    // Moving the rest costs as much as was taken since the last time.
    if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }
}
