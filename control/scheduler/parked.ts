/**
 * Tasks that could start but for a pause. Each waits with the others of the pause that keeps it, so that the end of a pause
 * looks at these alone.
 */
import type { Graph, Task } from '../task/graph.ts'
import { heldBy, type PausedTypes } from '../task/pauses.ts'
import { Fifo } from './fifo.ts'

/** Tasks that one step lets go. */
const TASKS_PER_STEP = 16

export interface ParkedOptions {
  readonly paused: PausedTypes
  /** `task` waits for the end of a pause from now on. */
  readonly onKept: (task: Task) => void
  /** The pause of `task` is over. Another one may begin or go on. */
  readonly onFree: (task: Task) => void
}

export class Parked {
  readonly #options: ParkedOptions
  readonly #byPause = new Map<Graph | string, Set<Task>>()
  /** Where each task is. */
  readonly #places = new Map<Task, Set<Task>>()
  /** Those whose pause is over. */
  readonly #free = new Fifo<Set<Task>>()

  constructor(options: ParkedOptions) {
    this.#options = options
  }

  /** Keeps `task` if it is paused and would start something; false otherwise. */
  keep(task: Task): boolean {
    const held = heldBy(task, this.#options.paused)
    if (held === undefined || hasBegun(task)) return false
    if (this.#places.has(task)) return true
    const tasks = this.#byPause.get(held.by) ?? new Set<Task>()
    this.#byPause.set(held.by, tasks)
    this.#places.set(task, tasks.add(task))
    this.#options.onKept(task)
    return true
  }

  /** `task` has ended or was deleted. */
  withdraw(task: Task): void {
    if (this.#places.size === 0) return
    this.#places.get(task)?.delete(task)
    this.#places.delete(task)
  }

  /** The pause of this graph, type or service is over. `step` lets its tasks go. */
  release(by: Graph | string): void {
    const tasks = this.#byPause.get(by)
    if (tasks === undefined) return
    this.#byPause.delete(by)
    this.#free.push(tasks)
  }

  /** Lets a few tasks go; false when there are none. */
  step(): boolean {
    const tasks = this.#free.peek()
    if (tasks === undefined) return false
    let left = TASKS_PER_STEP
    for (const task of tasks) {
      if (left-- === 0) return true
      this.withdraw(task)
      this.#options.onFree(task)
    }
    this.#free.shift()
    return true
  }
}

/** Whether it has ended, another service goes on with its attempt, its children exist, or a caller was asked for it. */
const hasBegun = (task: Task): boolean =>
  task.isTerminal ||
  task.neverRuns ||
  task.goesOnElsewhere ||
  task.fanOut !== undefined ||
  task.rare.asked_at !== undefined
