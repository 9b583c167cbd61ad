/** Queues the root tasks of new graphs, and those of retries, a few at a time, because a graph may have 100,000 of them. */
import type { Task } from '../task/graph.ts'
import { Fifo } from './fifo.ts'

/** Tasks of a new graph that one step queues. That is about as much work as to start one task. */
const ROOTS_PER_STEP = 16

/** The roots of a graph, how many they are, and the index of the next one to queue. The list may get children behind them. */
type Arrival = { readonly roots: readonly Task[]; readonly count: number; next: number }

export class Arrivals {
  readonly #arrivals = new Fifo<Arrival>()
  readonly #onRoot: (task: Task) => void

  /** `onRoot` is called with each pending task that has no unfinished dependency. */
  constructor(onRoot: (task: Task) => void) {
    this.#onRoot = onRoot
  }

  get isEmpty(): boolean {
    return this.#arrivals.peek() === undefined
  }

  add(roots: readonly Task[]): void {
    this.#arrivals.push({ roots, count: roots.length, next: 0 })
  }

  /** Queues a few roots of a graph. Returns false when no roots are left. */
  step(): boolean {
    const arrival = this.#arrivals.peek()
    if (arrival === undefined) return false
    const { roots, count } = arrival
    const end = Math.min(arrival.next + ROOTS_PER_STEP, count)
    for (; arrival.next < end; arrival.next++) {
      const task = roots[arrival.next]!
      if (task.status === 'pending' && !task.isDeleted) this.#onRoot(task)
    }
    if (end === count) this.#arrivals.shift()
    return true
  }
}
