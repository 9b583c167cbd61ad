/**
 * Starts attempts where slots are free, and hands their outcomes on.
 *
 * Only executing attempts hold a slot (`slots.ts`). An attempt whose start cannot be written to the journal does nothing:
 * its task is held until writing works again, and no other attempt starts meanwhile.
 */
import type { Log } from '../../shared/log.ts'
import type { OutputSoFar, StopReason } from '../executors/executor.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { type AttemptOutput, attemptOutput } from '../graph/attempt-record.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Task } from '../graph/graph.ts'
import type { SlotUse } from '../graph/waiting.ts'
import type { TaskStore } from '../store/tasks.ts'
import { Attempt, type AttemptHost, type AttemptOutcome } from './attempt.ts'
import { Fifo } from './fifo.ts'
import { isRetried, logFieldsOf, type Outcomes } from './outcomes.ts'
import type { ReadyQueue } from './ready-queue.ts'
import { Slots } from './slots.ts'

export interface AttemptsOptions {
  readonly store: TaskStore
  readonly executors: ExecutorRegistry
  readonly maxConcurrency: number
  readonly log: Log
  readonly host: AttemptHost
  readonly ready: ReadyQueue
  readonly outcomes: Outcomes
  readonly flush: () => void
  readonly toKeep: (task: Task, result: unknown) => unknown
  /** Called after the outcome of an attempt was applied, with what follows from it still to be done. */
  readonly onEnd: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

export class Attempts {
  readonly #store: TaskStore
  readonly #executors: ExecutorRegistry
  readonly #log: Log
  readonly #host: AttemptHost
  readonly #ready: ReadyQueue
  readonly #outcomes: Outcomes
  readonly #flush: () => void
  readonly #toKeep: (task: Task, result: unknown) => unknown
  readonly #onEnd: () => void
  readonly #onDefect: (error: unknown) => void
  readonly #slots: Slots
  /** Ready tasks whose attempts could not be written to the journal. While there are any, no attempt starts. */
  readonly #held = new Fifo<Task>()
  #isStopping = false

  constructor(options: AttemptsOptions) {
    this.#store = options.store
    this.#executors = options.executors
    this.#log = options.log
    this.#host = options.host
    this.#ready = options.ready
    this.#outcomes = options.outcomes
    this.#flush = options.flush
    this.#toKeep = options.toKeep
    this.#onEnd = options.onEnd
    this.#onDefect = options.onDefect
    this.#slots = new Slots(options.maxConcurrency)
  }

  /** What a task that only waits for a slot waits for. */
  get slotUse(): SlotUse {
    const hold = this.#held.length > 0 ? 'no attempt starts while the journal cannot be written' : undefined
    return { ...this.#slots.use, hold: this.#isStopping ? 'the service is stopping' : hold }
  }

  /** Tasks whose attempts hold a slot. */
  get executing(): Iterable<Task> {
    return this.#slots.tasks
  }

  /** The attempt of `task` that is being started or has not ended. */
  of(task: Task): Attempt | undefined {
    return this.#slots.attemptOf(task)
  }

  /** The output of the attempt of `task` that executes; undefined where its executor shows none. */
  outputOf(task: Task): OutputSoFar | undefined {
    return this.of(task)?.outputSoFar
  }

  /** Queues held tasks again. */
  releaseHeld(): void {
    for (let task = this.#held.shift(); task !== undefined; task = this.#held.shift()) this.#ready.push(task)
  }

  /** Starts nothing any more. */
  startNoMore(): void {
    this.#isStopping = true
  }

  stopAll(reason: StopReason): void {
    this.#slots.stopAll(reason)
  }

  /** Resolves when nothing executes. */
  idle(): Promise<void> {
    return this.#slots.idle()
  }

  /** Kills an attempt of `task` in the service that executes it. No attempt of ours may wait for it. */
  killRemote(task: Task, handle: Handle): void {
    this.#executors.get(task.type)?.killRemote?.(task, handle)
  }

  /** Starts one attempt if a slot is free; false if there is nothing to start. */
  startNext(): boolean {
    if (this.#isStopping || this.#held.length > 0 || !this.#slots.hasFree) return false
    const task = this.#ready.shift()
    if (task === undefined) return false
    const isWanted = !task.isDeleted || task.goesOnElsewhere
    const mayStart = (task.status === 'pending' && isWanted) || (task.status === 'running' && task.isBackingOff)
    if (mayStart) this.#start(task)
    return true
  }

  #start(task: Task): void {
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now() })
    const executor = this.#executors.get(task.type)
    if (executor === undefined) {
      const message = `no executor is registered for type ${task.type}`
      this.#outcomes.failed(task, { failure: { code: 'internal', message } })
      return
    }
    if (this.#log.debugging) this.#log.debug('attempt started', logFieldsOf(task))
    const attempt = new Attempt(task, executor, this.#host)
    const outcome = this.#slots.run(attempt)
    if (outcome instanceof Promise)
      outcome.then((ended) => this.#keepResult(attempt, task, ended)).catch((error) => this.#onDefect(error))
    else this.#keepResult(attempt, task, outcome)
  }

  /** Stores a large result in its file before the attempt counts as ended. Small results stay in memory. */
  #keepResult(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    const isNotLast = outcome.kind === 'failure' && isRetried(task, outcome)
    if (isNotLast || task.attempts !== undefined) attempt.output = outputOf(outcome)
    const isKept = 'result' in outcome && !isNotLast
    const result = isKept ? this.#toKeep(task, outcome.result) : undefined
    if (result instanceof Promise) {
      this.#slots.take(attempt)
      result
        .then((kept) => this.#attemptEnded(attempt, task, { ...outcome, result: kept } as AttemptOutcome))
        .catch((error) => this.#onDefect(error))
      return
    }
    this.#attemptEnded(attempt, task, outcome)
  }

  #attemptEnded(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    this.#slots.free(task)
    const isOver = task.status === 'cancelling' || outcome.kind === 'failure'
    if (isOver && attempt.mayGoOn && task.handle !== undefined) this.killRemote(task, task.handle)
    // A cancel was promised to a caller: it holds even if the attempt succeeded in the end.
    if (task.status === 'cancelling')
      this.#outcomes.cancelled(task, undefined, 'result' in outcome ? outcome.result : undefined, attempt.output)
    else this.#outcomes.take(attempt, outcome)
    if (task.status === 'pending' && outcome.kind === 'unrecorded') this.#held.push(task)
    if (attempt.hasBegun) this.#flush() // so that a crash does not repeat the attempt
    this.#onEnd()
  }
}

/** Exit code and last lines in the outcome of an attempt. */
const outputOf = (outcome: AttemptOutcome): AttemptOutput =>
  'result' in outcome || 'tail' in outcome
    ? attemptOutput(outcome.result, 'tail' in outcome ? outcome.tail : undefined)
    : {}
