/**
 * Tasks that are ready to run, first in, first out.
 *
 * The queue contains at most `READY_QUEUE_CAPACITY` tasks. Further tasks wait in a backlog, which refills the queue in order.
 * No task is refused or lost. Source: spec, Limits A.
 */
import type { Task } from '../graph/graph.ts'
import { Fifo } from './fifo.ts'

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
