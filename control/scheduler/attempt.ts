/**
 * One attempt at a task: calls the executor, enforces the timeout, forwards a cancel, and determines the outcome.
 *
 * The first reason to stop wins. Once the signal has fired, the outcome no longer depends on what the executor returns
 * or throws. The slot becomes free when the executor has returned, because nothing of the attempt runs after that.
 */
import { stackOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { TraceHeaders } from '../../shared/logs/trace.ts'
import {
  ExecutionError,
  type Executor,
  type ExecutorContext,
  type OutputSoFar,
  type StopReason,
} from '../executors/executor.ts'
import { withInput } from '../executors/hooks.ts'
import {
  copyFailure,
  copyHandle,
  copyProgress,
  copyResult,
  internal,
  type PlainCopy,
} from '../executors/plain-copies.ts'
import type { Keeper } from '../log/keeper.ts'
import type { Failure } from '../rules/failure.ts'
import type { AttemptOutput } from '../task/attempt-record.ts'
import type { Task } from '../task/graph.ts'
import type { Handle } from '../task/rare-state.ts'
import { traceHeadersOf } from '../tracing/trace-context.ts'
import { waitedTooLong } from './queue-waits.ts'

export type AttemptOutcome =
  | { readonly kind: 'success'; readonly result: unknown }
  | {
      readonly kind: 'failure'
      readonly failure: Failure
      readonly result?: unknown
      readonly tail?: string
      /** Whether every further attempt would fail the same way. */
      readonly isFinal?: boolean
    }
  /** A cancel or the stop of the service stopped the attempt. The scheduler decides the state of the task. */
  | { readonly kind: 'stopped'; readonly result?: unknown; readonly tail?: string }
  /** The start could not be kept. The attempt did nothing, and starts again once writing works. */
  | { readonly kind: 'unrecorded' }

/** The functions and settings that attempts need from the scheduler. All attempts share one object. */
export interface AttemptHost {
  readonly log: Log
  /** Milliseconds between a stop and the abandonment of an executor that has not returned. */
  readonly abandonAfterMs: number
  /** Identifies the data directory, so that attempts of other directories are not confused with ours. */
  readonly serviceId: string
  /** Whether attempts have spans. */
  readonly isTracing: boolean
  /** Asked before the attempt acts, and before an attempt in another service is killed. */
  readonly keeper: Pick<Keeper, 'kept'>
  /** Resolves the placeholders in the input. Returns a promise only if that takes long. Throws `ExecutionError`. */
  resolveInput(task: Task, signal: AbortSignal): unknown
  startedProcess(task: Task, pid: number): void
  handedOver(task: Task, handle: Handle | undefined): void
  progress(task: Task, attempt: number, message?: string, data?: unknown): void
  /** The attempt waits for its work to start. */
  waits(task: Task): void
  /** The work has started. */
  works(task: Task): void
  /** Gives the slot of the attempt back while it waits for another service. */
  standBy(task: Task): void
  /** Resolves once the attempt has a slot again. */
  resume(task: Task): Promise<void>
}

/**
 * Grace period after a restart for reading the outcome of an attempt that may already have finished, in milliseconds.
 * Attempts still running get none.
 */
const FIRST_LOOK_MS = 1_000

/** Milliseconds between two questions whether an attempt may be killed. */
export const KILL_RETRY_MS = 1_000

/** The longest delay of a timer. A timer with a longer delay would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

export class Attempt implements ExecutorContext {
  readonly task: Task
  readonly attempt: number
  readonly handle: Handle | undefined
  /** Whether the start could not be kept. Then the attempt did nothing. */
  #isUnrecorded = false
  /** Error of a reported value that cannot be kept. */
  #fault: string | undefined
  /** Whether the attempt may have had effects. */
  hasBegun = false
  /** Exit code and last lines for the attempt record. Undefined if the task keeps no records of its attempts. */
  output: AttemptOutput | undefined
  /** The output so far, for readers. */
  outputSoFar: OutputSoFar | undefined
  readonly #executor: Executor
  readonly #host: AttemptHost
  #controller: AbortController | undefined
  #stopReason: StopReason | undefined
  /** Whether its work had not started when it was to wait no longer, and what it waited for then. */
  #late: { readonly waiting: string | undefined } | undefined
  #timer: Timer | undefined
  /** Number of limits that count no longer. */
  #endedLimits = 0
  /** Whether the timeout does not count, because the work has not started. */
  #isWaiting: boolean
  /** Whether the input could not be resolved. Then the executor was not called. */
  #isUncalled = false
  #giveUp: (() => void) | undefined
  #isGivenUp = false

  constructor(task: Task, executor: Executor, host: AttemptHost) {
    this.task = task
    this.#executor = executor
    this.#host = host
    this.attempt = task.attempt
    this.handle = task.rare.handle
    this.#isWaiting = executor.startsLater === true
  }

  /**
   * Whether the attempt may continue in another service: the executor was stopped only because this service stops, did
   * not return, or was not called.
   */
  get mayGoOn(): boolean {
    return this.#stopReason === 'interrupted' || this.#isGivenUp || this.#isUncalled
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#stopReason !== undefined) this.#controller.abort(this.#stopReason)
    }
    return this.#controller.signal
  }

  get graphId(): string {
    return this.task.graph.id
  }

  get tenant(): string | undefined {
    return this.task.graph.tenant
  }

  get traceId(): string {
    return this.task.graph.traceId
  }

  get trace(): TraceHeaders | undefined {
    const { graph, id } = this.task
    return traceHeadersOf({ graph, id, attempt: this.attempt }, this.#host.isTracing)
  }

  get log(): Log {
    return this.#host.log.with({ trace_id: this.traceId, task_id: this.task.id, attempt: this.attempt })
  }

  get attemptId(): string {
    return `${this.#host.serviceId}/${this.task.graph.id}/${this.task.id}/${this.attempt}`
  }

  begin(): Promise<void> | undefined {
    const refused = (error: unknown) => {
      this.#isUnrecorded = true
      throw error
    }
    let kept: Promise<void> | undefined
    try {
      kept = this.#host.keeper.kept('act')
    } catch (error) {
      return refused(error)
    }
    if (kept === undefined) {
      this.hasBegun = true
      return undefined
    }
    return kept.then(() => {
      this.hasBegun = true
    }, refused)
  }

  handOver(handle: Handle | undefined): void {
    const known = this.#keep(copyHandle(handle))
    if (known !== undefined) this.#host.handedOver(this.task, known.value)
  }

  startedProcess(pid: number): void {
    if (Number.isSafeInteger(pid) && pid > 0) this.#host.startedProcess(this.task, pid)
    else this.#fault ??= 'the executor reports a process without a number'
  }

  showOutput(output: OutputSoFar): void {
    this.outputSoFar = output
  }

  standBy(): () => Promise<void> {
    this.#host.standBy(this.task)
    return () => this.#host.resume(this.task)
  }

  settled(): void {
    this.#endLimit()
  }

  progress(message?: string, data?: unknown): void {
    const report = this.#keep(copyProgress(message, data))
    if (report !== undefined) this.#host.progress(this.task, this.attempt, report.value.message, report.value.data)
  }

  /**
   * Undefined for a value that cannot be kept. Does not throw, because executors may not catch it; the attempt fails
   * later.
   */
  #keep<T>(kept: PlainCopy<T>): { readonly value: T } | undefined {
    if ('value' in kept) return kept
    this.#fault ??= kept.fault
    return undefined
  }

  /** Stops the executor. Only the first reason counts, but `interrupted` always limits the wait for the executor. */
  stop(reason: StopReason): void {
    const isFirst = this.#stopReason === undefined
    if (isFirst) {
      this.#stopReason = reason
      this.#controller?.abort(reason)
    }
    const isBounded = this.#executor.boundsItsStop === true && reason !== 'interrupted'
    if (isFirst ? isBounded : reason !== 'interrupted') return
    setTimeout(() => this.#giveUp?.(), this.#host.abandonAfterMs).unref()
  }

  /** Runs the attempt. Returns a promise of the outcome only if the executor does not answer at once. */
  run(): AttemptOutcome | Promise<AttemptOutcome> {
    try {
      const answer = this.task.rare.hasPlaceholders ? this.#executeResolved() : this.#executor.execute(this.task, this)
      if (!(answer instanceof Promise)) return this.#succeeded(answer)
      this.#startTimer()
      return new Promise((resolve) => {
        this.#giveUp = () => {
          this.log.error('executor did not stop when told to: its attempt is given up')
          this.#isGivenUp = true
          resolve(this.#stopped(undefined))
        }
        const done = (outcome: AttemptOutcome) => {
          this.#giveUp = undefined
          resolve(outcome)
        }
        try {
          answer.then(
            (result) => done(this.#succeeded(result)),
            (error) => done(this.#failed(error)),
          )
        } catch (error) {
          done(this.#failed(error)) // `then` of a foreign promise threw
        }
      })
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** Returns no promise if the input is known at once, so that a chain of such tasks leaves time for I/O. */
  #executeResolved(): unknown {
    const uncalled = (error: unknown) => {
      this.#isUncalled = true
      throw error
    }
    let input: unknown
    try {
      input = this.#host.resolveInput(this.task, this.signal)
    } catch (error) {
      return uncalled(error)
    }
    if (!(input instanceof Promise)) return this.#executor.execute(withInput(this.task, input), this)
    return input.then((resolved) => {
      if (this.signal.aborted) return uncalled(new ExecutionError('cancelled', 'ended before it was executed'))
      return this.#executor.execute(withInput(this.task, resolved), this)
    }, uncalled)
  }

  get isTimed(): boolean {
    const { timeout = 0, queue_timeout: queueTimeout = 0 } = this.task.options
    return timeout > 0 || queueTimeout > 0
  }

  goesOn(): void {
    const { timeout = 0 } = this.task
    this.#endWait()
    if (timeout > 0 && this.#stopReason === undefined) this.#stopAfter(Math.max(0, this.#timeLeftMs))
  }

  waits(): void {
    if (this.#late !== undefined) return // it ends as soon as it may be killed
    this.#isWaiting = true
    this.#endLimit()
    this.#host.waits(this.task)
  }

  /** A clock of another machine may be wrong. So no more counts than has passed here. */
  works(startedAt: number): void {
    const { timeout = 0, attemptStartedAt = 0 } = this.task
    this.#endWait()
    if (timeout <= 0 || this.#stopReason !== undefined) return
    const now = Date.now()
    const workedMs = Math.max(0, Math.min(now - startedAt, now - attemptStartedAt))
    this.#stopAfter(Math.max(0, timeout - workedMs))
  }

  #endWait(): void {
    this.#isWaiting = false
    this.#host.works(this.task)
    this.#endLimit()
  }

  /** Ends the limit that counts, also one that is over while nobody can tell yet whether the attempt may be killed. */
  #endLimit(): void {
    if (this.#stopReason !== undefined) return
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#late = undefined
    this.#endedLimits++
  }

  #startTimer(): void {
    const { timeout = 0 } = this.task
    if (timeout <= 0 || this.#isWaiting) return
    this.#stopAfter(this.handle === undefined ? timeout : Math.max(0, this.#timeLeftMs) + FIRST_LOOK_MS)
  }

  /** The timeout begins with the start of the attempt, even if that was in an earlier run of the service. */
  get #timeLeftMs(): number {
    const { timeout = 0, attemptStartedAt = 0 } = this.task
    return timeout - (Date.now() - attemptStartedAt)
  }

  /** Whether an earlier run ended the attempt because of its timeout, and was killed before it recorded that. */
  #wasTimedOut({ code }: Failure): boolean {
    const { timeout = 0 } = this.task
    const isOverdue = timeout > 0 && this.#timeLeftMs <= 0
    return code === 'cancelled' && this.handle !== undefined && isOverdue
  }

  #stopAfter(ms: number): void {
    const now = Math.min(ms, MAX_TIMER_MS)
    this.#timer = setTimeout(() => (ms > now ? this.#stopAfter(ms - now) : this.#timeOut()), now)
  }

  /** Stops the executor, because the work has not started in time. */
  waitedTooLong(): void {
    if (this.#stopReason !== undefined) return
    this.#late = { waiting: this.#executor.waitingHere?.(this.task) }
    this.#timeOut()
  }

  /** A process that was stopped for long may have lost the attempt to another replica. */
  #timeOut(): void {
    const owned = this.#host.keeper.kept('kill')
    if (owned === undefined) {
      this.stop('timeout')
      return
    }
    const endedLimits = this.#endedLimits
    const ifOver = (act: () => void) => () => {
      if (endedLimits === this.#endedLimits) act()
    }
    owned.then(
      ifOver(() => this.stop('timeout')),
      ifOver(() => this.#stopAfter(KILL_RETRY_MS)),
    )
  }

  #succeeded(answer: unknown): AttemptOutcome {
    const result = copyResult(answer)
    this.#endLimit()
    if (this.#isUnrecorded) return { kind: 'unrecorded' }
    if (this.#stopReason !== undefined) return this.#stopped('value' in result ? result.value : undefined)
    const fault = this.#fault ?? ('fault' in result ? result.fault : undefined)
    if (fault !== undefined) return this.#broke(internal(fault))
    return { kind: 'success', result: ('value' in result ? result.value : undefined) ?? null }
  }

  #failed(error: unknown): AttemptOutcome {
    this.#endLimit()
    if (this.#isUnrecorded) return { kind: 'unrecorded' }
    const { failure, result, tail, isBroken, isFinal = this.#isUncalled } = copyFailure(error)
    if (this.#stopReason !== undefined) return this.#stopped(result, tail)
    if (isBroken) return this.#broke(failure, error)
    if (this.#wasTimedOut(failure)) return this.#timedOut(result, tail)
    if (this.#fault !== undefined)
      return this.#broke(internal(`${this.#fault} (the attempt failed: ${failure.message})`))
    return { kind: 'failure', failure, ...outputOf(result, tail), ...(isFinal && { isFinal }) }
  }

  /** The outcome after a defect of the executor. `error` is the thrown value, if it threw one. */
  #broke(failure: Failure, error?: unknown): AttemptOutcome {
    this.log.error('executor broke', { error: failure.message, ...(error !== undefined && { cause: stackOf(error) }) })
    return { kind: 'failure', failure }
  }

  #stopped(result: unknown, tail?: string): AttemptOutcome {
    if (this.#stopReason === 'timeout') return this.#timedOut(result, tail)
    return { kind: 'stopped', ...outputOf(result, tail) }
  }

  #timedOut(result: unknown, tail: string | undefined): AttemptOutcome {
    const message = `task timed out after ${this.task.options.timeout}ms`
    const ofWork: Failure = { code: 'timeout', message, retryable: true }
    const failure = this.#late === undefined ? ofWork : waitedTooLong(this.#late.waiting)
    return { kind: 'failure', failure, ...outputOf(result, tail) }
  }
}

const outputOf = (result: unknown, tail: string | undefined) => ({
  ...(result !== undefined && { result }),
  ...(tail !== undefined && { tail }),
})
