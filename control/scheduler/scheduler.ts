/**
 * Runs tasks when their dependencies have succeeded.
 *
 * Everything here is an event: a graph arrives, an attempt ends, a backoff is over. Each event notes what it means
 * (a task is ready, a task was lost) and takes a turn. A turn reads as the sentences in `#turn`; it works until
 * nothing is left to do or its time is up, and goes on after the event loop has looked at its sockets. There is no
 * recursion and no polling: a chain of 100,000 tasks is a loop.
 *
 * A slot is held by an attempt that executes, by nothing else.
 *
 * What an executor does wrong ends with its attempt (`attempt.ts`). Any other error in here is a defect of the service: the
 * states in memory may contradict each other, so nothing is started any more, `fault` says why, and `onFault` is called.
 */
import { messageOf, stackOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { identify } from '../../shared/processes.ts'
import { inRanges, type Steps } from '../../shared/steps.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { type AttemptOutput, attemptOutput } from '../graph/attempt-record.ts'
import { backoffMs } from '../graph/backoff.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Failure } from '../graph/failure.ts'
import type { Graph, Task } from '../graph/graph.ts'
import type { LossReason } from '../graph/transitions.ts'
import type { Ending } from '../store/change.ts'
import type { TaskStore } from '../store/tasks.ts'
import { Attempt, type AttemptHost, type AttemptOutcome } from './attempt.ts'
import { BackoffLanes } from './backoff-lanes.ts'
import { type Cascade, Losses } from './losses.ts'
import { Fifo, ReadyQueue } from './ready-queue.ts'

/** Milliseconds of work before a turn gives way to I/O. */
const TURN_MS = 5

/** Tasks of a new graph queued per step: about as much work as starting one. */
const ROOTS_PER_STEP = 16

/** Steps between two looks at the clock within a turn. */
const STEPS_PER_LOOK = 32

export interface SchedulerOptions {
  readonly store: TaskStore
  readonly executors: ExecutorRegistry
  /** Attempts that may execute at the same time. */
  readonly maxConcurrency: number
  readonly log: Log
  /** Milliseconds after which an attempt that was told to stop is given up, should its executor not return. */
  readonly abandonAfterMs: number
  /** Tells the attempts of this data directory from those of others. */
  readonly serviceId: string
  /** Writes all changes so far to the journal, or throws. Called before an attempt acts. Once writing works again, call `goOn`. */
  readonly flushOrThrow: () => void
  /** Writes all changes so far to the journal. A failure is retried later. */
  readonly flush: () => void
  /** Called once, when a defect has stopped the scheduler for good: the service should end. See `Scheduler.fault`. */
  readonly onFault?: (fault: string) => void
  /** What a task holds for a result: itself, or, later, what stands for a large one. */
  readonly toKeep?: (task: Task, result: unknown) => unknown
}

/** A graph whose first tasks are being queued, and how far that has come. */
type Arrival = { readonly roots: readonly Task[]; next: number }

export class Scheduler {
  readonly #store: TaskStore
  readonly #executors: ExecutorRegistry
  readonly #maxConcurrency: number
  readonly #log: Log
  readonly #host: AttemptHost
  readonly #flush: () => void
  readonly #toKeep: (task: Task, result: unknown) => unknown
  readonly #onFault: (fault: string) => void
  readonly #ready = new ReadyQueue()
  readonly #backoffs = new BackoffLanes(() => this.#turn())
  readonly #arrivals = new Fifo<Arrival>()
  readonly #losses = new Losses((task, error, cascade) => this.#skip(task, error, cascade))
  /** Attempts whose outcome is not there yet. */
  readonly #executing = new Map<Task, Attempt>()
  /** The attempt that is just being started. Many an executor answers at once, and its attempt is never noted above. */
  #starting: Attempt | undefined
  /** Ready tasks whose attempts could not be written to the journal, and whether nothing is started for that reason. */
  readonly #held = new Fifo<Task>()
  #isHolding = false
  #isTurning = false
  #isTurnScheduled = false
  #isStopping = false
  #fault: string | undefined
  #whenIdle: (() => void) | undefined

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
    this.#maxConcurrency = maxConcurrency
    this.#log = log
    this.#host = {
      ...{ log, abandonAfterMs, serviceId, flushOrThrow },
      startedProcess: (task, pid) => this.#startedProcess(task, pid),
      handedOver: (task, handle) => this.#store.apply({ kind: 'handed-over', task, at: Date.now(), handle }),
      progress: (task, attempt, message, data) => this.#progress(task, attempt, message, data),
    }
  }

  /** Tasks that could start at once but for the concurrency limit; at most 1,024 are counted. */
  get queueLength(): number {
    return this.#ready.length
  }

  /** Why nothing is started any more, until the service is restarted; undefined while all is well. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Takes over a graph that the store has accepted. */
  add(graph: Graph): void {
    this.#arrivals.push({ roots: graph.roots(), next: 0 })
    this.#turn()
  }

  /** The journal can be written again. */
  goOn(): void {
    this.#isHolding = false
    for (let task = this.#held.shift(); task !== undefined; task = this.#held.shift()) this.#ready.push(task)
    this.#turn()
  }

  /** Takes over a graph of an earlier run: what was lost then may still have to be passed on to its dependents. */
  resume(graph: Graph): void {
    for (const task of graph.tasks) {
      if (task.isTerminal && task.status !== 'success') this.#losses.add(task, task.status as LossReason)
      else if (!task.isDeleted || task.status !== 'pending') continue
      else if (task.goesOnElsewhere) this.#ready.push(task)
      else this.#losses.add(task, 'deleted')
    }
    this.add(graph)
  }

  /** Deletes the record of `task`. A pending one never runs and its dependents are skipped; a running one goes on. */
  delete(task: Task): void {
    const wasPending = task.status === 'pending' && !task.goesOnElsewhere
    // The cancel was promised, and a restart will not know of it: no state file has a place for a deleted task.
    if (task.status === 'cancelling' && task.handle !== undefined) this.letGo(task, task.handle)
    this.#store.apply({ kind: 'deleted', task, at: Date.now() })
    if (wasPending) {
      this.#losses.add(task, 'deleted')
      if (task.graph.live === 0) this.#graphEnded(task.graph)
    }
    this.#turn()
  }

  /**
   * Cancels `task` and gives the tasks downstream that are skipped by it now. An executing task is `cancelling` until its
   * attempt has ended, and only then takes others along; one that has ended stays as it is.
   */
  cancel(task: Task): Promise<Task[]> {
    const { cascade, skipped } = newCascade()
    this.#cancel(task, cascade)
    release(cascade)
    this.#turn()
    return skipped
  }

  /**
   * Cancels all of `tasks`, as `cancel` does each, and gives a promise of those that are skipped by it. `onCancelled` is
   * called with each task right after it was cancelled. Pending tasks come first: a slot that becomes free between two
   * slices must not start one of them.
   */
  *cancelAll(tasks: readonly Task[], onCancelled: (task: Task) => void): Steps<{ readonly skipped: Promise<Task[]> }> {
    const { cascade, skipped } = newCascade()
    const left: Task[] = []
    const cancel = (task: Task) => {
      this.#cancel(task, cascade)
      onCancelled(task)
    }
    yield* inRanges(tasks.length, (from, to) => {
      for (const task of tasks.slice(from, to)) {
        if (task.status === 'pending') cancel(task)
        else left.push(task)
      }
    })
    yield* inRanges(left.length, (from, to) => left.slice(from, to).forEach(cancel))
    release(cascade)
    this.#turn()
    return { skipped }
  }

  #cancel(task: Task, cascade: Cascade): void {
    if (task.isTerminal || task.status === 'cancelling') return
    const attempt = this.#starting?.task === task ? this.#starting : this.#executing.get(task)
    if (task.status === 'running') this.#store.apply({ kind: 'cancel-requested', task, at: Date.now() })
    if (attempt !== undefined) {
      attempt.stop('cancelled')
      return
    }
    if (task.handle !== undefined) this.letGo(task, task.handle)
    this.#endCancelled(task, undefined, cascade)
  }

  /** Ends an attempt of `task` that another service carries out, and that nobody of ours waits for. */
  letGo(task: Task, handle: Handle): void {
    this.#executors.get(task.type)?.letGo?.(task, handle)
  }

  /**
   * Starts nothing any more and resolves when nothing executes. Attempts may finish within `graceMs`; the rest are
   * ended, and their tasks are pending again.
   */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    this.#backoffs.stop()
    if (this.#executing.size === 0) return
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve
    })
    const interrupt = setTimeout(() => this.interrupt(), graceMs)
    await idle
    clearTimeout(interrupt)
  }

  /** Ends what executes, while stopping, without waiting any longer. */
  interrupt(): void {
    for (const attempt of this.#executing.values()) attempt.stop('interrupted')
  }

  /** Works off what the last events left to do. */
  #turn(): void {
    if (this.#isTurning) return // an executor answered at once, within the turn that called it
    if (this.#fault !== undefined) return
    this.#isTurning = true
    let isDone = true
    try {
      isDone = this.#workForOneTurn()
    } catch (error) {
      this.#break(error)
    } finally {
      this.#isTurning = false
    }
    if (!isDone && !this.#isTurnScheduled) {
      this.#isTurnScheduled = true
      setImmediate(() => {
        this.#isTurnScheduled = false
        this.#turn()
      })
    }
  }

  /** True once nothing is left to do, false when the time of the turn is up. */
  #workForOneTurn(): boolean {
    const until = performance.now() + TURN_MS
    let isDone = false
    while (!isDone && performance.now() < until) {
      isDone = true
      for (let step = 0; step < STEPS_PER_LOOK; step++) {
        const hasSkipped = this.#losses.step()
        const hasArrived = this.#queueWhatArrived()
        const hasQueued = this.#queueWhatIsDue()
        const hasStarted = this.#startWhatFits()
        if (!hasSkipped && !hasArrived && !hasQueued && !hasStarted) break
        isDone = false
      }
    }
    return isDone
  }

  /** Stops for good: after an error that no attempt can be blamed for, the states in memory cannot be relied on. */
  #break(error: unknown): void {
    if (this.#fault !== undefined) return
    this.#fault = `the scheduler has stopped: ${messageOf(error)}`
    this.#backoffs.stop()
    this.#log.error('the scheduler has stopped because of a defect: no task is started any more', {
      cause: stackOf(error),
    })
    this.#onFault(this.#fault)
  }

  #skip(task: Task, error: string, cascade: Cascade | undefined): void {
    cascade?.skipped.push(task)
    this.#end(task, { status: 'skipped', error }, cascade)
  }

  /** Queues a few of the tasks that a new graph begins with; true when there may be more. */
  #queueWhatArrived(): boolean {
    const arrival = this.#arrivals.peek()
    if (arrival === undefined) return false
    const { roots } = arrival
    const end = Math.min(arrival.next + ROOTS_PER_STEP, roots.length)
    for (; arrival.next < end; arrival.next++) {
      const task = roots[arrival.next]!
      if (task.status === 'pending' && !task.isDeleted) this.#ready.push(task)
    }
    if (end === roots.length) this.#arrivals.shift()
    return true
  }

  /** Queues one task whose backoff is over. */
  #queueWhatIsDue(): boolean {
    if (this.#isStopping) return false
    const task = this.#backoffs.takeDue()
    if (task === undefined) return false
    this.#ready.push(task)
    return true
  }

  /** Starts one attempt if a slot is free. */
  #startWhatFits(): boolean {
    if (this.#isStopping || this.#isHolding || this.#executing.size >= this.#maxConcurrency) return false
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
      this.#attemptFailed(task, { code: 'internal', message }, undefined, undefined)
      return
    }
    if (this.#log.debugging) this.#log.debug('attempt started', fieldsOf(task))
    const attempt = new Attempt(task, executor, this.#host)
    this.#starting = attempt
    const outcome = attempt.run()
    this.#starting = undefined
    if (outcome instanceof Promise) {
      this.#executing.set(task, attempt)
      outcome.then((ended) => this.#keepResult(attempt, task, ended)).catch((error) => this.#break(error))
    } else this.#keepResult(attempt, task, outcome)
  }

  /** A large result is put into its file before the attempt counts as ended; most are small and stay as they are. */
  #keepResult(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    const isRetried = outcome.kind === 'failure' && this.#attemptsLeft(task) > 0
    if (isRetried || task.attempts !== undefined) attempt.output = outputOf(outcome)
    const isKept = 'result' in outcome && !isRetried
    const result = isKept ? this.#toKeep(task, outcome.result) : undefined
    if (result instanceof Promise) {
      this.#executing.set(task, attempt)
      result
        .then((kept) => this.#attemptEnded(attempt, task, { ...outcome, result: kept } as AttemptOutcome))
        .catch((error) => this.#break(error))
      return
    }
    this.#attemptEnded(attempt, task, outcome)
  }

  #startedProcess(task: Task, pid: number): void {
    const process = identify(pid)
    if (process === undefined) return // ended already, or a system that cannot tell
    this.#store.apply({ kind: 'process-started', task, at: Date.now(), process })
    this.#flush()
  }

  #progress(task: Task, attempt: number, message?: string, data?: unknown): void {
    const isOver =
      task.attempt !== attempt || task.isBackingOff || (task.status !== 'running' && task.status !== 'cancelling')
    if (isOver) return // an executor that reports after it returned
    const report = { ...(message !== undefined && { message }), ...(data !== undefined && { data }) }
    this.#store.apply({ kind: 'progress', task, at: Date.now(), ...report })
  }

  #attemptEnded(attempt: Attempt, task: Task, outcome: AttemptOutcome): void {
    if (this.#executing.size > 0) this.#executing.delete(task)
    const isOver = task.status === 'cancelling' || outcome.kind === 'failure'
    if (isOver && attempt.mayGoOn && task.handle !== undefined) this.letGo(task, task.handle)
    // A cancel is a promise to whoever asked for it: it holds whatever the attempt says in the end.
    if (task.status === 'cancelling')
      this.#endCancelled(task, 'result' in outcome ? outcome.result : undefined, undefined, attempt.output)
    else this.#takeOutcome(attempt, outcome)
    if (attempt.hasBegun) this.#flush() // what was done is not done again after a crash
    if (this.#isStopping && this.#executing.size === 0) this.#whenIdle?.()
    this.#turn()
  }

  #takeOutcome(attempt: Attempt, outcome: AttemptOutcome): void {
    const { task } = attempt
    switch (outcome.kind) {
      case 'success':
        this.#end(task, { status: 'success', result: outcome.result, ...outputIn(attempt) })
        break
      case 'stopped':
        this.#interrupted(task, 'the attempt was interrupted by the stop of the service', task.handle !== undefined)
        break
      case 'unrecorded':
        this.#interrupted(
          task,
          'the attempt did not begin: it could not be put on record',
          attempt.handle !== undefined,
        )
        this.#held.push(task)
        this.#isHolding = true
        break
      case 'failure':
        this.#attemptFailed(task, outcome.failure, outcome.result, attempt.output)
    }
  }

  #interrupted(task: Task, reason: string, goesOn: boolean): void {
    this.#store.apply({ kind: 'attempt-interrupted', task, at: Date.now(), reason, goesOn })
  }

  #endCancelled(task: Task, result?: unknown, cascade?: Cascade, output?: AttemptOutput): void {
    const failure: Failure = { code: 'cancelled', message: 'task cancelled' }
    const ending = { status: 'cancelled', error: failure.message, failure, ...keep(result) } as const
    this.#end(task, { ...ending, ...(output && { output }) }, cascade)
  }

  #attemptFailed(task: Task, failure: Failure, result: unknown, output: AttemptOutput | undefined): void {
    const attemptsLeft = this.#attemptsLeft(task)
    if (attemptsLeft > 0) {
      this.#store.apply({ kind: 'attempt-failed', task, at: Date.now(), failure, ...(output && { output }) })
      if (!this.#isStopping) this.#backoffs.add(task, backoffMs(task.usedAttempts + 1))
      this.#log.info('attempt failed, will be retried', {
        ...fieldsOf(task),
        error: failure.message,
        attempts_left: attemptsLeft,
      })
      return
    }
    const error = task.retry > 0 ? `task failed after all retries: ${failure.message}` : failure.message
    const line = task.retry > 0 ? 'task failed after all retries' : 'task failed'
    this.#log.warn(line, { ...fieldsOf(task), code: failure.code, error: failure.message })
    this.#end(task, { status: 'failed', error, failure, ...keep(result), ...(output && { output }) })
  }

  #attemptsLeft(task: Task): number {
    return task.retry + 1 - task.usedAttempts
  }

  /** Ends `task` and sees to those who depend on it. */
  #end(task: Task, ending: Ending, cascade?: Cascade): void {
    this.#store.apply({ kind: 'ended', task, at: Date.now(), ending })
    if (ending.status === 'success') this.#release(task)
    else this.#losses.add(task, ending.status, cascade)
    if (task.graph.live === 0) this.#graphEnded(task.graph)
  }

  #graphEnded(graph: Graph): void {
    graph.releaseEdges()
    const fields = { trace_id: graph.traceId, graph_id: graph.id, tasks: graph.tasks.length }
    this.#log.info('graph ended', { ...fields, duration_ms: Date.now() - graph.createdAt })
  }

  #release(task: Task): void {
    const { graph } = task
    const count = graph.dependentCount(task)
    for (let i = 0; i < count; i++) {
      const dependent = graph.dependent(task, i)
      if (--graph.missing[dependent.position]! > 0) continue
      if (dependent.status === 'pending' && !dependent.isDeleted) this.#ready.push(dependent)
    }
  }
}

/** What the outcome of an attempt says of its output. */
const outputOf = (outcome: AttemptOutcome): AttemptOutput =>
  'result' in outcome || 'tail' in outcome
    ? attemptOutput(outcome.result, 'tail' in outcome ? outcome.tail : undefined)
    : {}

const outputIn = ({ output }: Attempt) => (output === undefined ? {} : { output })

/** A cascade that stays open until `release`. */
function newCascade(): { readonly cascade: Cascade; readonly skipped: Promise<Task[]> } {
  const { promise, resolve } = Promise.withResolvers<Task[]>()
  return { cascade: { skipped: [], open: 1, end: resolve }, skipped: promise }
}

function release(cascade: Cascade): void {
  if (--cascade.open === 0) cascade.end(cascade.skipped)
}

const keep = (result: unknown) => (result === undefined ? {} : { result })

const fieldsOf = (task: Task) => ({
  trace_id: task.graph.traceId,
  graph_id: task.graph.id,
  task_id: task.id,
  attempt: task.attempt,
})
