/**
 * Runs tasks when their dependencies have succeeded.
 *
 * The scheduler reacts to events: a graph arrives, an attempt ends, a backoff is over. Each event queues its consequences
 * (a task is ready, a task is lost) and takes a turn, which repeats `#step` until nothing is left to do (`turns.ts`). There
 * is no recursion and no polling: a chain of 100,000 tasks is a loop.
 *
 * Only executing attempts hold a slot (`slots.ts`). `outcomes.ts` applies their outcomes.
 *
 * An error of an executor fails its attempt and nothing else (`attempt.ts`). Any other error here is a defect of the
 * service, after which the states in memory may contradict each other. The scheduler then starts no more attempts, `fault`
 * contains the reason, and `onFault` is called.
 */
import { messageOf, stackOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { inRanges, type Steps } from '../../shared/steps.ts'
import type { OutputSoFar } from '../executors/executor.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { type AttemptOutput, attemptOutput } from '../graph/attempt-record.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Graph, Task } from '../graph/graph.ts'
import type { LossReason } from '../graph/transitions.ts'
import type { SlotUse } from '../graph/waiting.ts'
import type { TaskStore } from '../store/tasks.ts'
import { Arrivals } from './arrivals.ts'
import { Attempt, type AttemptHost, type AttemptOutcome } from './attempt.ts'
import { BackoffLanes } from './backoff-lanes.ts'
import { Fifo } from './fifo.ts'
import { attemptsLeft, logFieldsOf, Outcomes } from './outcomes.ts'
import { ReadyQueue } from './ready-queue.ts'
import { reportsTo } from './reports.ts'
import { SkipReport } from './skip-cascade.ts'
import { Slots } from './slots.ts'
import { Turns } from './turns.ts'

export interface SchedulerOptions {
  readonly store: TaskStore
  readonly executors: ExecutorRegistry
  /** Attempts that may execute at the same time. */
  readonly maxConcurrency: number
  readonly log: Log
  /** Milliseconds after which a stopped attempt is abandoned if its executor has not returned. */
  readonly abandonAfterMs: number
  /** Tells the attempts of this data directory from those of others. */
  readonly serviceId: string
  /**
   * Writes all changes so far to the journal, or throws. Called before an attempt acts. Call `startAgain` once writing works
   * again.
   */
  readonly flushOrThrow: () => void
  /** Writes all changes so far to the journal. A failure is retried later. */
  readonly flush: () => void
  /** Called once, when a defect has stopped the scheduler for good: the service should end. See `Scheduler.fault`. */
  readonly onFault?: (fault: string) => void
  /** The value that a task holds for a result: the result itself, or a promise of what stands for a large one. */
  readonly toKeep?: (task: Task, result: unknown) => unknown
}

export class Scheduler {
  readonly #store: TaskStore
  readonly #executors: ExecutorRegistry
  readonly #log: Log
  readonly #host: AttemptHost
  readonly #flush: () => void
  readonly #toKeep: (task: Task, result: unknown) => unknown
  readonly #onFault: (fault: string) => void
  readonly #ready = new ReadyQueue()
  readonly #turns = new Turns(
    () => this.#step(),
    (error) => this.#break(error),
  )
  readonly #backoffs = new BackoffLanes(this.#ready, () => this.#turns.take())
  readonly #arrivals = new Arrivals(this.#ready)
  readonly #outcomes: Outcomes
  readonly #slots: Slots
  /** Ready tasks whose attempts could not be written to the journal. While there are any, no attempt starts. */
  readonly #held = new Fifo<Task>()
  #isStopping = false
  #fault: string | undefined

  constructor({
    store,
    executors,
    maxConcurrency,
    log,
    abandonAfterMs,
    serviceId,
    flushOrThrow,
    flush,
    onFault,
    toKeep,
  }: SchedulerOptions) {
    this.#flush = flush
    this.#onFault = onFault ?? (() => {})
    this.#toKeep = toKeep ?? ((_task, result) => result)
    this.#store = store
    this.#executors = executors
    this.#slots = new Slots(maxConcurrency)
    this.#log = log
    this.#host = { log, abandonAfterMs, serviceId, flushOrThrow, ...reportsTo(store, flush) }
    this.#outcomes = new Outcomes({ store, log, ready: this.#ready, backoffs: this.#backoffs })
  }

  /** Tasks that only wait for a slot; at most 1,024 are counted. */
  get queueLength(): number {
    return this.#ready.length
  }

  /** What a task that only waits for a slot waits for. */
  get slotUse(): SlotUse {
    const hold = this.#held.length > 0 ? 'no attempt starts while the journal cannot be written' : undefined
    return { ...this.#slots.use, hold: this.#fault ?? (this.#isStopping ? 'the service is stopping' : hold) }
  }

  /** The output of the attempt of `task` that executes; undefined where its executor shows none. */
  outputOf(task: Task): OutputSoFar | undefined {
    return this.#slots.attemptOf(task)?.outputSoFar
  }

  /** Why nothing is started any more, until the service is restarted; undefined while all is well. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Runs a graph that the store has accepted. */
  add(graph: Graph): void {
    this.#arrivals.add(graph)
    this.#turns.take()
  }

  /** To be called when the journal can be written again: attempts that could not be recorded start now. */
  startAgain(): void {
    for (let task = this.#held.shift(); task !== undefined; task = this.#held.shift()) this.#ready.push(task)
    this.#turns.take()
  }

  /** Runs a recovered graph. Dependents of tasks that were lost in the earlier run may still have to be skipped. */
  resume(graph: Graph): void {
    for (const task of graph.tasks) {
      if (task.isTerminal && task.status !== 'success') this.#outcomes.skips.add(task, task.status as LossReason)
      else if (!task.isDeleted || task.status !== 'pending') continue
      else if (task.goesOnElsewhere) this.#ready.push(task)
      else this.#outcomes.skips.add(task, 'deleted')
    }
    this.add(graph)
  }

  /** Deletes the record of `task`. A pending task never runs and its dependents are skipped; a running task goes on. */
  delete(task: Task): void {
    const wasPending = task.status === 'pending' && !task.goesOnElsewhere
    // The caller of the cancel was promised an end, and a restart would not know of it: state files omit deleted tasks.
    if (task.status === 'cancelling' && task.handle !== undefined) this.killRemote(task, task.handle)
    this.#store.apply({ kind: 'deleted', task, at: Date.now() })
    if (wasPending) {
      this.#outcomes.skips.add(task, 'deleted')
      if (task.graph.live === 0) this.#outcomes.graphEnded(task.graph)
    }
    this.#turns.take()
  }

  /**
   * Cancels `task`. Resolves with the tasks downstream that are skipped now. An executing task is `cancelling` until its
   * attempt has ended, and its dependents are skipped only then. A task that has ended stays as it is.
   */
  cancel(task: Task): Promise<Task[]> {
    const report = new SkipReport()
    this.#cancel(task, report)
    report.closed()
    this.#turns.take()
    return report.skipped
  }

  /**
   * Cancels all of `tasks` as `cancel` does; `skipped` resolves with the tasks that are skipped by it. `onCancelled` is
   * called right after each task. Pending tasks come first: a slot that becomes free between two steps must not start one.
   */
  *cancelAll(tasks: readonly Task[], onCancelled: (task: Task) => void): Steps<{ readonly skipped: Promise<Task[]> }> {
    const report = new SkipReport()
    const started: Task[] = []
    const cancel = (task: Task) => {
      this.#cancel(task, report)
      onCancelled(task)
    }
    yield* inRanges(tasks.length, (from, to) => {
      for (const task of tasks.slice(from, to)) {
        if (task.status === 'pending') cancel(task)
        else started.push(task)
      }
    })
    yield* inRanges(started.length, (from, to) => started.slice(from, to).forEach(cancel))
    report.closed()
    this.#turns.take()
    return { skipped: report.skipped }
  }

  #cancel(task: Task, report: SkipReport): void {
    if (task.isTerminal || task.status === 'cancelling') return
    const attempt = this.#slots.attemptOf(task)
    if (task.status === 'running') this.#store.apply({ kind: 'cancel-requested', task, at: Date.now() })
    if (attempt !== undefined) {
      attempt.stop('cancelled')
      return
    }
    if (task.handle !== undefined) this.killRemote(task, task.handle)
    this.#outcomes.cancelled(task, report)
  }

  /** Kills an attempt of `task` in the service that executes it. No attempt of ours may wait for it. */
  killRemote(task: Task, handle: Handle): void {
    this.#executors.get(task.type)?.killRemote?.(task, handle)
  }

  /**
   * Starts nothing any more and resolves when nothing executes. Attempts may finish within `graceMs`; the rest are
   * ended, and their tasks are pending again.
   */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    this.#backoffs.stop()
    const interrupt = setTimeout(() => this.interrupt(), graceMs)
    await this.#slots.idle()
    clearTimeout(interrupt)
  }

  /** While stopping: interrupts all attempts instead of waiting for them. */
  interrupt(): void {
    this.#slots.stopAll('interrupted')
  }

  /** Does a little of the work that the last events left; false when nothing is left. */
  #step(): boolean {
    const hasSkipped = this.#outcomes.skips.step()
    const hasArrived = this.#arrivals.step()
    const hasQueued = this.#backoffs.step()
    const hasStarted = this.#startWhatFits()
    return hasSkipped || hasArrived || hasQueued || hasStarted
  }

  /** Stops for good after a defect. */
  #break(error: unknown): void {
    if (this.#fault !== undefined) return
    this.#fault = `the scheduler has stopped: ${messageOf(error)}`
    this.#turns.stop()
    this.#backoffs.stop()
    this.#log.error('the scheduler has stopped because of a defect: no task is started any more', {
      cause: stackOf(error),
    })
    this.#onFault(this.#fault)
  }

  /** Starts one attempt if a slot is free. */
  #startWhatFits(): boolean {
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
      this.#outcomes.failed(task, { code: 'internal', message })
      return
    }
    if (this.#log.debugging) this.#log.debug('attempt started', logFieldsOf(task))
    const attempt = new Attempt(task, executor, this.#host)
    const outcome = this.#slots.run(attempt)
    if (outcome instanceof Promise)
      outcome.then((ended) => this.#keepResult(attempt, task, ended)).catch((error) => this.#break(error))
    else this.#keepResult(attempt, task, outcome)
  }

  /** Stores a large result in its file before the attempt counts as ended. Small results stay in memory. */
  #keepResult(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    const isRetried = outcome.kind === 'failure' && attemptsLeft(task) > 0
    if (isRetried || task.attempts !== undefined) attempt.output = outputOf(outcome)
    const isKept = 'result' in outcome && !isRetried
    const result = isKept ? this.#toKeep(task, outcome.result) : undefined
    if (result instanceof Promise) {
      this.#slots.take(attempt)
      result
        .then((kept) => this.#attemptEnded(attempt, task, { ...outcome, result: kept } as AttemptOutcome))
        .catch((error) => this.#break(error))
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
    this.#turns.take()
  }
}

/** Exit code and last lines in the outcome of an attempt. */
const outputOf = (outcome: AttemptOutcome): AttemptOutput =>
  'result' in outcome || 'tail' in outcome
    ? attemptOutput(outcome.result, 'tail' in outcome ? outcome.tail : undefined)
    : {}
