/**
 * Tasks that wait until a caller approves or rejects them.
 *
 * Such a task never has a slot: a hundred thousand may wait while one other task executes. Once it may run, the values
 * of its placeholders are determined, and that it is asked for is noted with the time as a change of the task. So its
 * timeout counts from then on, also over a restart. The answer, the timeout or a cancel ends it. Placeholders are
 * resolved one task after the other, because a value may have to be read from a file.
 */
import { checkApproval } from '../executors/approval.ts'
import { copyFailure } from '../executors/plain-copies.ts'
import type { Failure } from '../rules/failure.ts'
import { expiryOf } from '../task/approval.ts'
import type { Task } from '../task/graph.ts'
import { type Due, DueQueue } from './due-queue.ts'
import { Fifo } from './fifo.ts'
import type { InputResolver } from './input-resolver.ts'

export interface ApprovalsOptions {
  readonly inputs: Pick<InputResolver, 'resolve'>
  /** The task waits for an answer from now on. */
  readonly onAsked: (task: Task) => void
  /** What it would ask is invalid. */
  readonly onFault: (task: Task, failure: Failure) => void
  /** Nobody has answered in time. */
  readonly onExpired: (task: Task) => void
  /** Asks for a call of `step`. */
  readonly wake: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

export class Approvals {
  readonly #options: ApprovalsOptions
  /** Tasks that may run, and were not asked for in this run of the service. */
  readonly #arrived = new Fifo<Task>()
  /** Tasks that were asked for, with their timeouts. */
  readonly #asked = new Map<Task, Due<Task> | undefined>()
  readonly #expiries: DueQueue<Task>
  /** The task whose placeholders are being resolved. */
  #resolving: { readonly task: Task; readonly controller: AbortController } | undefined
  #isStopped = false

  constructor(options: ApprovalsOptions) {
    this.#options = options
    this.#expiries = new DueQueue<Task>((task) => this.#expire(task), options.wake)
  }

  /** Number of tasks that were asked for and have no answer. */
  get count(): number {
    return this.#asked.size
  }

  /** Whether `task` waits for an answer. Ends it first if its time is over. */
  isAsked(task: Task): boolean {
    if (!this.#asked.has(task)) return false
    const expiry = expiryOf(task.rare.asked_at!, task.options.timeout)
    if (expiry === undefined || Date.now() < expiry) return true
    this.withdraw(task)
    this.#options.onExpired(task)
    this.#options.wake()
    return false
  }

  /** `task` may run as far as its dependencies and its condition go. */
  push(task: Task): void {
    this.#arrived.push(task)
  }

  /** `task` was answered, cancelled or deleted. */
  withdraw(task: Task): void {
    const expiry = this.#asked.get(task)
    if (expiry !== undefined) this.#expiries.remove(expiry)
    this.#asked.delete(task)
    if (this.#resolving?.task === task) this.#resolving.controller.abort('cancelled')
  }

  /** Asks for one task, or ends one whose time is over; false when nothing is left to do. */
  step(): boolean {
    const hasAsked = this.#askNext()
    const hasExpired = this.#expiries.step()
    return hasAsked || hasExpired
  }

  /** Nothing is asked for and nothing ends any more: the next start of the service continues. */
  stop(): void {
    this.#isStopped = true
    this.#expiries.stop()
    this.#resolving?.controller.abort('interrupted')
  }

  #askNext(): boolean {
    if (this.#isStopped || this.#resolving !== undefined) return false
    const task = this.#arrived.shift()
    if (task === undefined) return false
    if (isOpen(task) && !this.#asked.has(task)) this.#prepare(task)
    return true
  }

  #prepare(task: Task): void {
    if (task.rare.asked_at !== undefined) {
      this.#await(task, task.rare.asked_at) // asked for in an earlier run
      return
    }
    const controller = new AbortController()
    try {
      const input = task.rare.hasPlaceholders ? this.#options.inputs.resolve(task, controller.signal) : task.input
      if (!(input instanceof Promise)) {
        this.#ask(task, input)
        return
      }
      this.#resolving = { task, controller }
      input
        .then(
          (resolved) => this.#resolved(task, () => this.#ask(task, resolved)),
          (error) => this.#resolved(task, () => this.#refuse(task, error)),
        )
        .catch((error) => this.#options.onDefect(error))
    } catch (error) {
      this.#refuse(task, error)
    }
  }

  /** Calls `next` unless the task was cancelled or deleted meanwhile, or the service stops. */
  #resolved(task: Task, next: () => void): void {
    this.#resolving = undefined
    if (!this.#isStopped && isOpen(task)) next()
    this.#options.wake()
  }

  #ask(task: Task, input: unknown): void {
    try {
      checkApproval(task.toolName, input)
    } catch (error) {
      this.#refuse(task, error)
      return
    }
    this.#options.onAsked(task)
    this.#await(task, task.rare.asked_at!)
  }

  #refuse(task: Task, error: unknown): void {
    const { failure, isBroken } = copyFailure(error)
    if (isBroken) throw error
    this.#options.onFault(task, failure)
  }

  #await(task: Task, askedAt: number): void {
    const expiry = expiryOf(askedAt, task.options.timeout)
    this.#asked.set(task, expiry === undefined ? undefined : this.#expiries.add(task, expiry - Date.now()))
  }

  #expire(task: Task): void {
    this.#asked.delete(task)
    this.#options.onExpired(task)
  }
}

/** Whether it can still be answered. */
const isOpen = ({ status, isDeleted }: Task): boolean => status === 'pending' && !isDeleted
