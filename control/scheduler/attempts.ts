/**
 * Starts attempts in free slots, and passes on their outcomes.
 *
 * Only executing attempts hold a slot (`slots.ts`). If the start of an attempt cannot be written to the journal, the
 * attempt does nothing. Its task is held until writing works again, and no other attempt starts meanwhile.
 */
import type { Log } from '../../shared/logs/log.ts'
import type { Executor, OutputSoFar, StopReason } from '../executors/executor.ts'
import { copyResult } from '../executors/plain-copies.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { missingSourceOf } from '../executors/runtime/outcome.ts'
import type { Keeper } from '../log/keeper.ts'
import type { Failure } from '../rules/failure.ts'
import { LARGE_RESULT_CHARACTERS, ResultFile } from '../rules/result-file.ts'
import { type AttemptOutput, attemptOutput } from '../task/attempt-record.ts'
import type { Task } from '../task/graph.ts'
import { type Handle, NO_RARE_STATE } from '../task/rare-state.ts'
import { NO_OPTIONS } from '../task/task-options.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { SlotUse } from '../task/waiting.ts'
import { Attempt, type AttemptHost, type AttemptOutcome, KILL_RETRY_MS } from './attempt.ts'
import { Fifo } from './fifo.ts'
import type { GraphRoom } from './graph-room.ts'
import type { OutcomeCache } from './outcome-cache.ts'
import { isRetried, logFieldsOf, type Outcomes } from './outcomes.ts'
import type { Parked } from './parked.ts'
import type { ReadyQueue } from './ready-queue.ts'
import { Slots } from './slots.ts'

export interface AttemptsOptions {
  readonly store: TaskStore
  readonly executors: ExecutorRegistry
  readonly maxConcurrency: number
  readonly log: Log
  readonly host: Omit<AttemptHost, 'keeper' | 'log' | 'standBy' | 'resume'>
  readonly ready: ReadyQueue
  readonly outcomes: Outcomes
  /** Keeps tasks that are paused. */
  readonly parked: Pick<Parked, 'keep'>
  readonly cache: OutcomeCache
  readonly keeper: Pick<Keeper, 'kept' | 'flush' | 'results'>
  /** Bounds what the results of a graph take. */
  readonly room: GraphRoom
  /** Called after the outcome of an attempt was applied. Its consequences are queued. */
  readonly onEnd: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

/**
 * Adds the tasks that `result`, of the dynamic `task`, asks for to its graph. Calls `end`, which ends the task as a success, in the
 * turn of the event loop in which the graph has them. Otherwise resolves with why they are refused, or with nothing after `signal`
 * has fired.
 */
export type AddTasks = (
  task: Task,
  result: unknown,
  signal: AbortSignal,
  end: () => void,
) => Promise<Failure | undefined>

export class Attempts {
  /** To be set before a dynamic task runs. */
  addTasks: AddTasks = async () => {
    throw new Error('nothing adds tasks')
  }
  readonly #store: TaskStore
  readonly #executors: ExecutorRegistry
  readonly #log: Log
  readonly #host: AttemptHost
  readonly #ready: ReadyQueue
  readonly #outcomes: Outcomes
  readonly #parked: AttemptsOptions['parked']
  readonly #cache: OutcomeCache
  readonly #keeper: AttemptsOptions['keeper']
  readonly #room: GraphRoom
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
    this.#keeper = options.keeper
    this.#host = {
      ...{ ...options.host, keeper: options.keeper, log: options.log },
      standBy: (task) => this.#standBy(task),
      resume: (task) => this.#slots.resume(task),
    }
    this.#ready = options.ready
    this.#outcomes = options.outcomes
    this.#parked = options.parked
    this.#cache = options.cache
    this.#room = options.room
    this.#onEnd = options.onEnd
    this.#onDefect = options.onDefect
    this.#slots = new Slots(options.maxConcurrency)
  }

  /** The use of slots, for the reasons of waiting tasks. */
  get slotUse(): Omit<SlotUse, 'paused'> {
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

  /** The output of the executing attempt of `task`. Undefined if its executor shows none. */
  outputOf(task: Task): OutputSoFar | undefined {
    return this.of(task)?.outputSoFar
  }

  /** Queues held tasks again. */
  releaseHeld(): void {
    for (let task = this.#held.shift(); task !== undefined; task = this.#held.shift()) this.#ready.push(task)
  }

  /** Starts no more attempts. */
  startNoMore(): void {
    this.#isStopping = true
    this.#slots.stopStandingBy('interrupted')
  }

  stopAll(reason: StopReason): void {
    this.#slots.stopAll(reason)
  }

  /** Resolves when no attempt executes. */
  idle(): Promise<void> {
    return this.#slots.idle()
  }

  /** Kills an attempt of `task` in another service. No attempt in this service may wait for that one. */
  killRemote(task: Task, handle: Handle): void {
    const kill = () => this.#executors.get(task.type)?.killRemote?.(task, handle)
    const owned = this.#keeper.kept('kill')
    if (owned === undefined) kill()
    else owned.then(kill, () => setTimeout(() => this.killRemote(task, handle), KILL_RETRY_MS).unref())
  }

  /** Starts one attempt. Returns false if no slot is free or no task is ready. */
  startNext(): boolean {
    if (this.#isStopping || this.#held.length > 0 || !this.#slots.hasFree) return false
    const task = this.#ready.shift()
    if (task === undefined) return false
    const isWanted = !task.isDeleted || task.goesOnElsewhere
    const mayStart = (task.status === 'pending' && isWanted) || (task.status === 'running' && task.rare.isBackingOff)
    // A child that is about to be cancelled or deleted has left the queue. So its clock ends here.
    if (mayStart && task.childOf?.stops(task) === true) this.#host.works(task)
    else if (mayStart && !this.#parked.keep(task)) this.#start(task)
    return true
  }

  /** Gives the task an earlier outcome of its key, when its first attempt starts; false if it has to be executed. */
  #takeOver(task: Task): boolean {
    if (task.options.cache === undefined || task.startedAt !== undefined) return false
    const source = this.#cache.find(task, Date.now())
    if (source === undefined) return false
    const { result } = source
    if (result instanceof ResultFile) this.#keeper.results.share(result)
    this.#outcomes.reused(task, source, result)
    return true
  }

  /**
   * Ends a task without options and history whose result is known; false if it has to be executed. Without this short way, a
   * graph of ten such tasks takes a tenth more CPU time in all.
   */
  #endAtOnce(task: Task, executor: Executor): boolean {
    const { graph, options, rare, attempt } = task
    if (options !== NO_OPTIONS || rare !== NO_RARE_STATE || attempt > 0 || this.#log.debugging) return false
    const result = copyResult(executor.knownResult?.(task))
    if (!('value' in result) || result.value === undefined) return false
    const bytes = this.#room.bytesOf(graph, result.value)
    if (bytes >= LARGE_RESULT_CHARACTERS || bytes > this.#room.left(graph)) return false
    this.#outcomes.known(task, result.value)
    return true
  }

  #start(task: Task): void {
    if (this.#takeOver(task)) return
    const executor = this.#executors.get(task.type)
    if (executor?.knownResult !== undefined && this.#endAtOnce(task, executor)) return
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now() })
    if (executor === undefined) {
      const message = `no executor is registered for type ${task.type}`
      this.#outcomes.failed(task, { failure: { code: 'internal', message } })
      return
    }
    if (this.#log.debugging) this.#log.debug('attempt started', logFieldsOf(task))
    if (executor.startsLater !== true) this.#host.works(task)
    const attempt = new Attempt(task, executor, this.#host)
    const outcome = this.#slots.run(attempt)
    if (outcome instanceof Promise)
      outcome.then((ended) => this.#keepResult(attempt, task, ended)).catch((error) => this.#onDefect(error))
    else this.#keepResult(attempt, task, outcome)
  }

  /** Another task may have the slot meanwhile. */
  #standBy(task: Task): void {
    if (this.#slots.standBy(task)) this.#onEnd()
  }

  /** Stores a large result in its file before the attempt counts as ended. Small results stay in memory. */
  #keepResult(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    const isNotLast = outcome.kind === 'failure' && isRetried(task, outcome)
    if (isNotLast || task.rare.attempts !== undefined) attempt.output = outputOf(outcome)
    const isKept = 'result' in outcome && !isNotLast
    const bytes = isKept ? this.#room.bytesOf(task.graph, outcome.result) : 0
    const fault = this.#room.faultOf(task.graph, 'the result', bytes)
    if (fault !== undefined) {
      this.#attemptEnded(attempt, task, withoutResult(outcome, fault))
      return
    }
    const given = 'result' in outcome ? outcome.result : undefined
    const result = isKept ? this.#keeper.results.keep(task, given) : undefined
    if (result instanceof Promise) {
      this.#slots.take(attempt)
      const release = this.#room.reserve(task.graph, bytes)
      result
        .then((kept) => {
          release()
          this.#resultKept(attempt, { ...outcome, result: kept } as AttemptOutcome, given)
        })
        .catch((error) => this.#onDefect(error))
      return
    }
    this.#resultKept(attempt, outcome, given)
  }

  /** `outcome` has its result as it is kept. */
  #resultKept(attempt: Attempt, outcome: AttemptOutcome, result: unknown): void {
    const { task } = attempt
    if (outcome.kind === 'success' && task.options.dynamic === true) this.#addTasks(attempt, result, outcome)
    else this.#attemptEnded(attempt, task, outcome)
  }

  /** The attempt keeps its slot until its graph has the tasks that `result` asks for. `outcome` is a success. */
  #addTasks(attempt: Attempt, result: unknown, outcome: AttemptOutcome): void {
    const { task, signal } = attempt
    let hasEnded = false
    const end = (outcome: AttemptOutcome) => {
      hasEnded = true
      this.#attemptEnded(attempt, task, outcome)
    }
    this.#slots.take(attempt)
    this.addTasks(task, result, signal, () => end(outcome))
      .then((failure) => {
        if (failure) end({ ...outcome, kind: 'failure', failure, isFinal: true })
        else if (!hasEnded) end({ ...outcome, kind: 'stopped' })
      })
      .catch((error) => this.#onDefect(error))
  }

  #attemptEnded(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    this.#slots.free(task)
    const isOver = task.status === 'cancelling' || outcome.kind === 'failure'
    if (isOver && attempt.mayGoOn && task.rare.handle !== undefined) this.killRemote(task, task.rare.handle)
    // A caller was told that the task is cancelled. So it is, even if the attempt succeeded.
    if (task.status === 'cancelling')
      this.#outcomes.cancelled(task, {
        result: 'result' in outcome ? outcome.result : undefined,
        output: attempt.output,
      })
    else this.#outcomes.take(attempt, outcome)
    this.#cache.note(task)
    const missing = outcome.kind === 'failure' ? missingSourceOf(outcome.failure) : undefined
    if (missing !== undefined) this.#cache.forget(missing)
    if (task.status === 'pending' && outcome.kind === 'unrecorded') this.#held.push(task)
    if (attempt.hasBegun) this.#keeper.flush() // prevents that a crash repeats the attempt
    this.#onEnd()
  }
}

/** The outcome of an attempt whose result is not kept because of `fault`. A failure keeps its own code. */
function withoutResult(outcome: AttemptOutcome, fault: Failure): AttemptOutcome {
  switch (outcome.kind) {
    case 'success':
      return { kind: 'failure', failure: fault, isFinal: true }
    case 'failure': {
      const { result: _, failure, ...rest } = outcome
      return { ...rest, failure: { ...failure, message: `${failure.message}; ${fault.message}` } }
    }
    default:
      return { kind: outcome.kind }
  }
}

/** The exit code and the last lines of an outcome. */
const outputOf = (outcome: AttemptOutcome): AttemptOutput =>
  'result' in outcome || 'tail' in outcome
    ? attemptOutput(outcome.result, 'tail' in outcome ? outcome.tail : undefined)
    : {}
