/**
 * Tasks that callers end: approvals, and waits for a signal, a time or an HTTP answer.
 *
 * Such a task never has a slot: a hundred thousand may wait while one other task executes. Once it may run, the values
 * of its placeholders are determined, and that it is asked for is noted with the time as a change of the task. So its
 * times count from then on, also over a restart. The answer or signal, a time or a cancel ends it. Placeholders are
 * resolved one task after the other, because a value may have to be read from a file.
 */
import { checkApproval } from '../executors/approval.ts'
import { copyFailure } from '../executors/plain-copies.ts'
import { checkWait } from '../executors/wait.ts'
import type { Failure } from '../rules/failure.ts'
import { isApproval } from '../task/approval.ts'
import { endOf, isDueFirst } from '../task/asked-end.ts'
import type { Task } from '../task/graph.ts'
import { isWait, looksOutside } from '../task/wait.ts'
import { type Due, DueQueue, WALL } from './due-queue.ts'
import { Fifo } from './fifo.ts'
import type { InputResolver } from './input-resolver.ts'
import { Polls, type PollsOptions } from './polls.ts'

export interface AskedTasksOptions extends Pick<PollsOptions, 'look'> {
  readonly inputs: Pick<InputResolver, 'resolve'>
  /** Whether `task` is paused: then nobody is asked for it, until it is pushed again. */
  readonly parks: (task: Task) => boolean
  /** The task waits from now on. */
  readonly onAsked: (task: Task) => void
  /** What it would ask is invalid. */
  readonly onFault: (task: Task, failure: Failure) => void
  /** Its `timeout` is over. */
  readonly onExpired: (task: Task) => void
  /** What it waits for has come: its time, with the value null, or the answer that it looks for. */
  readonly onMet: (task: Task, value: unknown) => void
  /** Asks for a call of `step`. */
  readonly wake: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

export class AskedTasks {
  readonly #options: AskedTasksOptions
  /** Tasks that may run, and were not asked for in this run of the service. */
  readonly #arrived = new Fifo<Task>()
  /** Tasks that were asked for, with when they end by themselves. */
  readonly #asked = new Map<Task, Due<Task> | undefined>()
  readonly #ends: DueQueue<Task>
  readonly #polls: Polls
  #approvals = 0
  /** The task whose placeholders are being resolved. */
  #resolving: { readonly task: Task; readonly controller: AbortController } | undefined
  #isStopped = false

  constructor(options: AskedTasksOptions) {
    this.#options = options
    this.#ends = new DueQueue<Task>((task) => this.#end(task), options.wake, WALL)
    const { look, wake, onDefect } = options
    this.#polls = new Polls({
      ...{ look, wake, onDefect },
      onMet: (task, value) => {
        if (!this.isAsked(task)) return // its time was over
        this.withdraw(task)
        options.onMet(task, value)
      },
      onFault: (task, failure) => {
        this.withdraw(task)
        options.onFault(task, failure)
      },
    })
  }

  /** Approvals that were asked for and have no answer. */
  get approvals(): number {
    return this.#approvals
  }

  /** Whether `task` waits for a caller. Ends it first if its time is over. */
  isAsked(task: Task): boolean {
    if (!this.#asked.has(task)) return false
    const end = endOf(task)
    if (end === undefined || Date.now() < end) return true
    this.#end(task)
    this.#options.wake()
    return false
  }

  /** `task` may run as far as its dependencies and its condition go. */
  push(task: Task): void {
    this.#arrived.push(task)
  }

  /** `task` was ended by a caller, or deleted. */
  withdraw(task: Task): void {
    const end = this.#asked.get(task)
    if (end !== undefined) this.#ends.remove(end)
    if (this.#asked.delete(task) && isApproval(task)) this.#approvals--
    this.#polls.withdraw(task)
    if (this.#resolving?.task === task) this.#resolving.controller.abort('cancelled')
  }

  /** Asks for one task, or ends one whose time is over; false when nothing is left to do. */
  step(): boolean {
    const hasAsked = this.#askNext()
    const hasEnded = this.#ends.step()
    const hasLooked = this.#polls.step()
    return hasAsked || hasEnded || hasLooked
  }

  /** Nothing is asked for and nothing ends any more: the next start of the service continues. */
  stop(): void {
    this.#isStopped = true
    this.#ends.stop()
    this.#polls.stop()
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
      this.#await(task) // asked for in an earlier run
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
    if (this.#options.parks(task)) return
    try {
      const check = isWait(task) ? checkWait : checkApproval
      check(task.toolName, input)
    } catch (error) {
      this.#refuse(task, error)
      return
    }
    this.#options.onAsked(task)
    this.#await(task)
  }

  #refuse(task: Task, error: unknown): void {
    const { failure, isBroken } = copyFailure(error)
    if (isBroken) throw error
    this.#options.onFault(task, failure)
  }

  #await(task: Task): void {
    if (isApproval(task)) this.#approvals++
    const end = endOf(task)
    this.#asked.set(task, end === undefined ? undefined : this.#ends.add(task, end - Date.now()))
    if (isWait(task) && looksOutside(task)) this.#polls.watch(task)
  }

  #end(task: Task): void {
    this.withdraw(task)
    if (isDueFirst(task)) this.#options.onMet(task, null)
    else this.#options.onExpired(task)
  }
}

/** Whether a caller can still end it. */
const isOpen = ({ status, isDeleted }: Task): boolean => status === 'pending' && !isDeleted
