/**
 * Looks at the world outside for tasks that wait for it: again and again, with a backoff, until a look is met.
 *
 * Between two looks a task holds nothing but its due time, so thousands may wait. At most `MAX_POLLS` looks go on at a time.
 * After a restart the first look comes at once. An error of a look fails its task, and nothing else.
 */
import type { Look } from '../executors/executor.ts'
import { copyFailure } from '../executors/plain-copies.ts'
import { backoffMs } from '../rules/backoff.ts'
import type { Failure } from '../rules/failure.ts'
import type { Task } from '../task/graph.ts'
import { type Due, DueQueue } from './due-queue.ts'
import { Fifo } from './fifo.ts'

/** Looks at the same time. Further ones wait. */
export const MAX_POLLS = 16

/** Milliseconds of a look. After that it is not met. */
export const POLL_TIMEOUT_MS = 30_000

/** The pauses of a wait without a `backoff`. */
export const POLL_BACKOFF = { initial_ms: 1_000, factor: 2, max_ms: 30_000 } as const

/** Characters of the reason why a look was not met. */
export const MAX_UNMET_CHARACTERS = 200

export interface PollsOptions {
  /** One look for the task. Throws if no look can ever be met. */
  readonly look: (task: Task, signal: AbortSignal) => Promise<Look>
  readonly onMet: (task: Task, result: unknown) => void
  readonly onFault: (task: Task, failure: Failure) => void
  /** Asks for a call of `step`. */
  readonly wake: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

/** What is known of a task whose world is looked at. */
interface Watched {
  looks: number
  /** Of the last look. */
  controller?: AbortController
  /** After the last look. */
  pause?: Due<Task>
}

export class Polls {
  readonly #options: PollsOptions
  readonly #watched = new Map<Task, Watched>()
  readonly #pauses: DueQueue<Task>
  readonly #due = new Fifo<Task>()
  #running = 0

  constructor(options: PollsOptions) {
    this.#options = options
    this.#pauses = new DueQueue<Task>((task) => this.#due.push(task), options.wake)
  }

  /** Looks from now on. */
  watch(task: Task): void {
    this.#watched.set(task, { looks: 0 })
    this.#due.push(task)
  }

  /** `task` has ended, or was deleted. */
  withdraw(task: Task): void {
    const { controller, pause } = this.#watched.get(task) ?? {}
    if (!this.#watched.delete(task)) return
    controller?.abort('cancelled')
    if (pause !== undefined) this.#pauses.remove(pause)
    task.setRare('unmet', undefined)
  }

  /** Begins one look; false when nothing is left to do. */
  step(): boolean {
    const hasCome = this.#pauses.step()
    if (this.#running === MAX_POLLS) return hasCome
    const task = this.#due.shift()
    if (task === undefined) return hasCome
    const watched = this.#watched.get(task)
    if (watched !== undefined) this.#look(task, watched).catch((error) => this.#options.onDefect(error))
    return true
  }

  /** Looks no more. */
  stop(): void {
    this.#pauses.stop()
    for (const task of [...this.#watched.keys()]) this.withdraw(task)
  }

  async #look(task: Task, watched: Watched): Promise<void> {
    const controller = new AbortController()
    watched.controller = controller
    watched.looks++
    this.#running++
    const timer = setTimeout(() => controller.abort('timeout'), POLL_TIMEOUT_MS)
    const look = await this.#options.look(task, controller.signal).catch((error) => copyFailure(error))
    clearTimeout(timer)
    this.#running--
    this.#options.wake()
    if (this.#watched.get(task) !== watched) return // it has ended meanwhile
    if (controller.signal.aborted) this.#again(task, watched, `no answer within ${POLL_TIMEOUT_MS} ms`)
    else if ('failure' in look) this.#options.onFault(task, look.failure)
    else if (look.isMet) this.#options.onMet(task, look.result)
    else this.#again(task, watched, look.why)
  }

  #again(task: Task, watched: Watched, why: string): void {
    task.setRare('unmet', why.slice(0, MAX_UNMET_CHARACTERS).toWellFormed())
    watched.pause = this.#pauses.add(task, backoffMs(watched.looks + 1, task.options.backoff ?? POLL_BACKOFF))
  }
}
