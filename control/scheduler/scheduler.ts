/**
 * Runs tasks when their dependencies have succeeded.
 *
 * The scheduler reacts to events: a graph arrives, an attempt ends, a backoff is over. Each event queues its
 * consequences (a task is ready, a task is lost) and takes a turn, which repeats `#step` until nothing is left to do
 * (`turns.ts`). There is no recursion and no polling: a chain of 100,000 tasks is a loop.
 *
 * `attempts.ts` starts attempts, `outcomes.ts` applies their outcomes. Tasks that a caller ends wait apart
 * (`asked-tasks.ts`).
 *
 * An error of an executor fails its attempt and nothing else (`attempt.ts`). Any other error here is a defect of the
 * service, after which the states in memory may contradict each other. The scheduler then starts no more attempts,
 * `fault` contains the reason, and `onFault` is called.
 */
import type { ApprovalResult } from '../../shared/contract/approval.ts'
import { messageOf, stackOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { OutputSoFar } from '../executors/executor.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import type { Keeper } from '../log/keeper.ts'
import { hasChildren } from '../rules/group-rule.ts'
import { isApproval, unanswered } from '../task/approval.ts'
import type { Change } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { Groups } from '../task/graph-groups.ts'
import type { KeptPauses } from '../task/pauses.ts'
import type { Handle } from '../task/rare-state.ts'
import type { Retention } from '../task/retention.ts'
import type { TaskStore } from '../task/task-store.ts'
import { isWait, unsignalled } from '../task/wait.ts'
import type { SlotUse } from '../task/waiting.ts'
import { Arrivals } from './arrivals.ts'
import { AskedTasks } from './asked-tasks.ts'
import { type AddTasks, Attempts } from './attempts.ts'
import { Delays } from './delays.ts'
import { DueQueue } from './due-queue.ts'
import { FanOuts } from './fan-outs.ts'
import { GraphRoom } from './graph-room.ts'
import { InputResolver } from './input-resolver.ts'
import { DEFAULT_MAX_CACHED, OutcomeCache } from './outcome-cache.ts'
import { Outcomes } from './outcomes.ts'
import { Parked } from './parked.ts'
import { QueueWaits, waitedTooLong } from './queue-waits.ts'
import { ReadyQueue } from './ready-queue.ts'
import { reportsTo } from './reports.ts'
import { SkipReport } from './skip-report.ts'
import { Turns } from './turns.ts'

export interface SchedulerOptions {
  readonly store: TaskStore
  readonly executors: ExecutorRegistry
  /** Maximum concurrent attempts. */
  readonly maxConcurrency: number
  readonly log: Log
  /** Milliseconds until a stopped attempt is abandoned whose executor has not returned. */
  readonly abandonAfterMs: number
  /** Identifies the data directory, so that attempts of other directories are not confused with ours. */
  readonly serviceId: string
  /** Whether attempts have spans. Default: false. */
  readonly isTracing?: boolean
  /** What keeps changes, lists and large results. Call `startAgain` once it can keep changes again after a failure. */
  readonly keeper: Pick<Keeper, 'flush' | 'groups' | 'keepFanOut' | 'kept' | 'pauses' | 'results'>
  /** Makes room for children. Default: there is room. */
  readonly retention?: Pick<Retention, 'roomFor'>
  /** Called once, when a defect has stopped the scheduler for good: the service should end. See `Scheduler.fault`. */
  readonly onFault?: (fault: string) => void
  /** Maximum bytes of a referenced value as JSON. Default: no limit. */
  readonly maxReferenceBytes?: number
  /** Children that a task with `for_each` may have. Default: any number. */
  readonly maxFanOut?: number
  /** Outcomes that are kept under the keys of tasks. Default 10,000. */
  readonly maxCachedOutcomes?: number
  /** Bytes of results and resolved inputs that one graph may store. Default: no limit. */
  readonly maxGraphResultBytes?: number
}

export class Scheduler {
  readonly #store: TaskStore
  readonly #log: Log
  readonly #onFault: (fault: string) => void
  /** How long an attempt of an earlier run waits begins only when its service says that it does. */
  readonly #ready = new ReadyQueue((task) => {
    if (task.rare.handle === undefined) this.#queueWaits.begin(task)
  })
  readonly #turns = new Turns(
    () => this.#step(),
    (error) => this.#break(error),
  )
  /** Tasks that wait for their next attempt. They hold no slots. */
  readonly #backoffs = new DueQueue<Task>(
    (task) => this.#enter(task),
    () => this.#turns.take(),
  )
  readonly #delays = new Delays(
    (task) => this.#enter(task),
    () => this.#turns.take(),
  )
  readonly #queueWaits = new QueueWaits(
    (task) => this.#waitedTooLong(task),
    () => this.#turns.take(),
  )
  readonly #asked: AskedTasks
  readonly #parked: Parked
  readonly #pauses: KeptPauses
  /** Which graphs run of those that share a limit. */
  readonly groups: Groups
  /** Outcomes under the keys of tasks. */
  readonly cache: OutcomeCache
  readonly #outcomes: Outcomes
  readonly #arrivals: Arrivals
  readonly #attempts: Attempts
  readonly #fanOuts: FanOuts
  #fault: string | undefined

  constructor({
    store,
    executors,
    maxConcurrency,
    log,
    abandonAfterMs,
    serviceId,
    isTracing = false,
    keeper,
    retention = { roomFor: () => undefined },
    onFault,
    maxReferenceBytes = Number.POSITIVE_INFINITY,
    maxFanOut = Number.POSITIVE_INFINITY,
    maxCachedOutcomes = DEFAULT_MAX_CACHED,
    maxGraphResultBytes = Number.POSITIVE_INFINITY,
  }: SchedulerOptions) {
    const room = new GraphRoom(maxGraphResultBytes)
    const inputs = new InputResolver(store, keeper.results, room, maxReferenceBytes)
    this.#onFault = onFault ?? (() => {})
    this.#store = store
    this.#log = log
    this.#pauses = keeper.pauses
    this.#pauses.onChange = (key) => this.#pauseChanged(key, this.#pauses.all.has(key))
    this.#parked = new Parked({
      paused: this.#pauses.all,
      onKept: (task) => this.#queueWaits.withdraw(task),
      onFree: (task) => this.#enter(task),
    })
    this.groups = keeper.groups
    this.groups.onPlace = (graph) => {
      this.#arrive(graph)
      this.#turns.take()
    }
    this.groups.onCancel = (graph, by) => void this.#cancelGraph(graph, by)
    store.watch((change) => {
      const { kind } = change
      const isNoWait = kind === 'ended' || kind === 'attempt-failed' || kind === 'attempt-interrupted'
      if (isNoWait || (kind === 'deleted' && change.task.neverRuns)) this.#queueWaits.withdraw(change.task)
      if (kind === 'ended' || kind === 'deleted') {
        this.#delays.withdraw(change.task)
        this.#parked.withdraw(change.task)
      }
      if (kind === 'graph-paused' || kind === 'graph-resumed') this.#pauseChanged(change.graph, kind === 'graph-paused')
      // Each end is followed by a turn, in which the next graph starts: the end is written before that start.
      if (kind === 'graph-ended') this.groups.release(change.graph)
    })
    this.#asked = new AskedTasks({
      inputs,
      parks: (task) => this.#parked.keep(task),
      onAsked: (task) => store.apply({ kind: 'asked', task, at: Date.now() }),
      onFault: (task, failure) => this.#outcomes.failWithoutAttempt(task, failure),
      onExpired: (task) => {
        const late = isWait(task) ? unsignalled : unanswered
        this.#outcomes.failWithoutAttempt(task, late(task.options.timeout!))
      },
      onMet: (task, value) => this.#outcomes.signalled(task, value),
      look: async (task, signal) => {
        const input = task.rare.hasPlaceholders ? await inputs.resolve(task, signal) : task.input
        return executors.get(task.type)!.look!(input, { signal, tenant: task.graph.tenant })
      },
      wake: () => this.#turns.take(),
      onDefect: (error) => this.#break(error),
    })
    const ready = {
      push: (task: Task) => {
        if (!this.#delays.keep(task)) this.#enter(task)
      },
    }
    this.#fanOuts = new FanOuts({
      ...{ store, log, maxFanOut, retention, keeper, room, inputs },
      parks: (task) => this.#parked.keep(task),
      onChild: (child) => this.#outcomes.arrived(child),
      onEndedBefore: (child) => this.#outcomes.tellDependents(child),
      cancel: (child, reason) => this.#cancel(child, undefined, reason),
      delete: (child) => this.delete(child),
      onFault: (task, failure) => this.#outcomes.failWithoutAttempt(task, failure),
      onEnd: (task, ending) => this.#outcomes.fanOutEnded(task, ending),
      wake: () => this.#turns.take(),
      onDefect: (error) => this.#break(error),
    })
    this.#outcomes = new Outcomes({
      ...{ store, log, ready, backoffs: this.#backoffs, fanOuts: this.#fanOuts, inputs, groups: this.groups },
      onTested: () => this.#turns.take(),
      onDefect: (error) => this.#break(error),
    })
    this.cache = new OutcomeCache(store, maxCachedOutcomes, (task) => {
      const executor = executors.get(task.type)
      return executor?.onBehalfOf === undefined ? '' : executor.onBehalfOf(task, task.rare.handle)
    })
    this.#arrivals = new Arrivals((task) => this.#outcomes.revived(task))
    this.#attempts = new Attempts({
      ...{ store, executors, maxConcurrency, log, keeper, ready: this.#ready, outcomes: this.#outcomes },
      ...{ parked: this.#parked, cache: this.cache, room },
      host: {
        ...{ abandonAfterMs, serviceId, isTracing },
        ...reportsTo(store, keeper),
        resolveInput: (task, signal) => inputs.resolve(task, signal),
        waits: (task) => this.#queueWaits.begin(task),
        works: (task) => this.#queueWaits.withdraw(task),
      },
      onEnd: () => this.#turns.take(),
      onDefect: (error) => this.#break(error),
    })
  }

  /** Tasks that only wait for a slot; at most 1,024 are counted. */
  get queueLength(): number {
    return this.#ready.length
  }

  /** The use of slots, for the reasons of waiting tasks. */
  get slotUse(): SlotUse {
    const slotUse = { ...this.#attempts.slotUse, paused: this.#pauses.all }
    return this.#fault === undefined ? slotUse : { ...slotUse, hold: this.#fault }
  }

  /** Approvals that wait for an answer. */
  get approvalsWaiting(): number {
    return this.#asked.approvals
  }

  /** Tasks whose attempts execute. */
  get executing(): Iterable<Task> {
    return this.#attempts.executing
  }

  /** The output of the executing attempt of `task`. Undefined if its executor shows none. */
  outputOf(task: Task): OutputSoFar | undefined {
    return this.#attempts.outputOf(task)
  }

  /** Why no attempt starts until the service is restarted; undefined if there was no defect. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Runs a graph that the store has accepted. */
  add(graph: Graph): void {
    if (!this.groups.keep(graph)) this.#arrive(graph)
    this.groups.accepted(graph)
    this.#turns.take()
  }

  #arrive(graph: Graph): void {
    this.#arrivals.add(graph.roots())
    this.#outcomes.othersEnded(graph)
  }

  /** Whether dependents of tasks that have ended are yet to be told of that, or tasks to be queued. Until then, nothing is retried. */
  get isTelling(): boolean {
    return !(this.#outcomes.endedTasks.isEmpty && this.#arrivals.isEmpty)
  }

  /** As `FanOuts.listAgain`. */
  listAgain(task: Task): Promise<readonly unknown[]> {
    return this.#fanOuts.listAgain(task)
  }

  /**
   * Queues tasks of `graph` to run again. It has a place of its group, or waits for one, if it shares a limit. Call `goOn` once
   * that is kept: an attempt that starts earlier waits until it is.
   */
  retry(change: Extract<Change, { kind: 'tasks-retried' }>): void {
    const { graph, tasks } = change
    this.#store.apply(change)
    this.groups.keep(graph)
    const isRoot = ({ position }: Task) => graph.missing[position] === 0 // nobody tells it of an end any more
    this.#arrivals.add(tasks.filter(isRoot))
    for (const task of tasks) if (!isRoot(task)) this.#outcomes.revived(task)
    this.#outcomes.othersEnded(graph)
    this.groups.accepted(graph)
  }

  goOn(): void {
    this.#turns.take()
  }

  /** Whether `task`, which is pending, is about to start: what it does can no longer be taken back. */
  isBeginning(task: Task): boolean {
    return this.#attempts.of(task) !== undefined || this.#fanOuts.isBeginning(task)
  }

  /** To be called before a dynamic task runs. */
  useAdditions(add: AddTasks): void {
    this.#attempts.addTasks = add
  }

  /** Gives `graph` other tasks. None of those that it loses has started, or is about to. */
  patch(change: Extract<Change, { kind: 'graph-patched' }>): void {
    const { graph, added, removed } = change
    this.#store.apply(change)
    for (const task of removed) {
      this.#queueWaits.withdraw(task)
      this.#delays.withdraw(task)
      this.#parked.withdraw(task)
      this.#ready.withdraw(task)
      this.#asked.withdraw(task)
    }
    for (const task of added) this.#outcomes.revived(task)
    if (graph.live === 0) this.#outcomes.graphEnded(graph)
    else this.#outcomes.othersEnded(graph)
    this.#turns.take()
  }

  /** As `patch`, for what a dynamic task adds: `end` ends that task. No attempt starts between the two. */
  patchAtEnd(change: Extract<Change, { kind: 'graph-patched' }>, end: () => void): void {
    this.#turns.after(() => {
      this.patch(change)
      end()
    })
  }

  /** `graph`, which has a place or waits for one, is not accepted. */
  giveUp(graph: Graph): void {
    this.groups.release(graph)
    this.#turns.take()
  }

  /** One that is not accepted yet is cancelled when it is. */
  async #cancelGraph(graph: Graph, by: string): Promise<void> {
    const { id, traceId, tasks, isAccepted } = graph
    if (!isAccepted) return
    graph.isCancelled = true
    this.#log.info('graph cancelled: another takes its place', { trace_id: traceId, graph_id: id, by })
    const isToEnd = (task: Task) => !task.isTerminal && !task.neverRuns && task.status !== 'cancelling'
    // One that should have been refused never gets a place, in which it could do something at its end.
    const isRefused = graph.waitsFor !== undefined && graph.options.concurrency?.on_full === 'refuse'
    const some = tasks.filter((task) => isToEnd(task) && (isRefused || !task.waitsForEnd))
    try {
      await runCooperatively(this.cancelAll(some, () => {}))
    } catch (error) {
      this.#break(error)
    }
  }

  /** Called when the journal can be written again. Starts the attempts that could not be recorded. */
  startAgain(): void {
    this.#attempts.releaseHeld()
    this.#turns.take()
  }

  /**
   * Runs a recovered graph. A crash may have cut off a skip cascade, so the dependents of all lost tasks are notified
   * again. In a graph with rules, all dependents decide again.
   */
  resume(graph: Graph): void {
    for (const task of graph.tasks) {
      if (task.childOf !== undefined) {
        if (task.isDeleted && task.goesOnElsewhere) this.#ready.push(task) // the others follow their parents
      } else if (task.isTerminal && (graph.hasRules || task.status !== 'success')) this.#outcomes.endedTasks.add(task)
      else if (!task.isDeleted || task.status !== 'pending') continue
      else if (task.goesOnElsewhere) this.#ready.push(task)
      else this.#outcomes.endedTasks.add(task)
    }
    this.add(graph)
  }

  /**
   * Deletes the record of `task`. A pending task never runs, and its dependents are skipped. A running task continues.
   */
  delete(task: Task): void {
    const wasPending = task.status === 'pending' && !task.goesOnElsewhere
    // State files omit deleted tasks, so a restart would not end the attempt, as its caller was told.
    if (task.status === 'cancelling' && task.rare.handle !== undefined) this.killRemote(task, task.rare.handle)
    this.#store.apply({ kind: 'deleted', task, at: Date.now() })
    if (task.fanOut !== undefined) this.#fanOuts.deleted(task)
    if (wasPending) {
      this.#asked.withdraw(task)
      if (task.childOf !== undefined) this.#fanOuts.childEnded(task)
      this.#outcomes.tellDependents(task)
      if (task.atEnd === undefined) this.#outcomes.othersEnded(task.graph)
      if (task.graph.live === 0) this.#outcomes.graphEnded(task.graph)
    }
    this.#turns.take()
  }

  /** Ends an approval with the answer of a caller; false if it does not wait for one. */
  answer(task: Task, answer: ApprovalResult): boolean {
    if (!this.#asked.isAsked(task)) return false
    this.#asked.withdraw(task)
    this.#outcomes.answered(task, answer)
    this.#turns.take()
    return true
  }

  /** Ends a wait with the value of a caller; false if it does not wait. */
  signal(task: Task, value: unknown): boolean {
    if (!this.#asked.isAsked(task)) return false
    this.#asked.withdraw(task)
    this.#outcomes.signalled(task, value)
    this.#turns.take()
    return true
  }

  /**
   * Cancels `task`. Resolves with the tasks downstream that are skipped now. An executing task is `cancelling` until
   * its attempt has ended, and its dependents are skipped only then. An ended task does not change.
   */
  cancel(task: Task): Promise<Task[]> {
    const report = new SkipReport()
    this.#cancel(task, report)
    report.closed()
    this.#turns.take()
    return report.skipped
  }

  /**
   * Cancels all `tasks` as `cancel` does. `skipped` resolves with the tasks that are skipped because of that.
   * `onCancelled` is called right after each task. Pending tasks come first, so that a slot that becomes free between
   * two steps starts none of them. No dependent is notified meanwhile, because it may be cancelled too and must not run
   * before that.
   */
  *cancelAll(tasks: readonly Task[], onCancelled: (task: Task) => void): Steps<{ readonly skipped: Promise<Task[]> }> {
    const report = new SkipReport()
    const started: Task[] = []
    const cancel = (task: Task) => {
      this.#cancel(task, report)
      onCancelled(task)
    }
    this.#outcomes.endedTasks.hold()
    this.#fanOuts.hold()
    try {
      yield* inRanges(tasks.length, (from, to) => {
        for (const task of tasks.slice(from, to)) {
          if (task.status === 'pending') cancel(task)
          else started.push(task)
        }
      })
      yield* inRanges(started.length, (from, to) => started.slice(from, to).forEach(cancel))
    } finally {
      this.#outcomes.endedTasks.release()
      this.#fanOuts.release()
    }
    report.closed()
    this.#turns.take()
    return { skipped: report.skipped }
  }

  /** `reason` completes the error of the task. */
  #cancel(task: Task, report?: SkipReport, reason?: string): void {
    if (task.isTerminal || task.status === 'cancelling') return
    const attempt = this.#attempts.of(task)
    const isFanOut = task.fanOut !== undefined
    if (isFanOut && task.status === 'pending') this.#beginFanOut(task)
    if (task.status === 'running') {
      const why = reason ?? this.groups.whyCancelled(task.graph)
      this.#store.apply({ kind: 'cancel-requested', task, at: Date.now(), ...(why !== undefined && { reason: why }) })
    }
    if (isFanOut) {
      this.#fanOuts.cancelled(task) // it ends after its children
      return
    }
    if (attempt !== undefined) {
      attempt.stop('cancelled')
      return
    }
    if (task.rare.handle !== undefined) this.killRemote(task, task.rare.handle)
    this.#asked.withdraw(task)
    this.#outcomes.cancelled(task, { report, reason })
  }

  /** After a restart, which has not come to `task` yet: its children are to be ended as well. None of them starts here. */
  #beginFanOut(task: Task): void {
    this.#fanOuts.hold()
    this.#fanOuts.push(task)
    this.#fanOuts.release()
  }

  /** Kills an attempt of `task` in another service. No attempt in this service may wait for that one. */
  killRemote(task: Task, handle: Handle): void {
    this.#attempts.killRemote(task, handle)
  }

  /**
   * Starts no more attempts, and resolves when none executes. Attempts may finish within `graceMs`. The others are
   * ended, and their tasks are pending again.
   */
  async stop(graceMs: number): Promise<void> {
    this.#attempts.startNoMore()
    this.#asked.stop()
    this.#fanOuts.stop()
    this.#backoffs.stop()
    this.#delays.stop()
    this.#queueWaits.stop()
    const interrupt = setTimeout(() => this.interrupt(), graceMs)
    await this.#attempts.idle()
    clearTimeout(interrupt)
  }

  /** Interrupts all attempts. Called while the service stops. */
  interrupt(): void {
    this.#attempts.stopAll('interrupted')
  }

  /** Does a small part of the queued work. Returns false when none is left. */
  #step(): boolean {
    const hasTold = this.#outcomes.endedTasks.step()
    const hasFanned = this.#fanOuts.step()
    const hasArrived = this.#arrivals.step()
    const hasFreed = this.#parked.step()
    const hasQueued = this.#backoffs.step()
    const hasCome = this.#delays.step()
    const hasWaited = this.#queueWaits.step()
    const hasAsked = this.#asked.step()
    const hasStarted = this.#attempts.startNext()
    return hasTold || hasFanned || hasArrived || hasFreed || hasQueued || hasCome || hasWaited || hasAsked || hasStarted
  }

  /** `task` may start but for a pause, a free slot, its list or its answer. */
  #enter(task: Task): void {
    if (!this.#parked.keep(task)) this.#queueFor(task).push(task)
  }

  /** A pause has begun, or is over. */
  #pauseChanged(of: Graph | string, isPaused: boolean): void {
    if (isPaused) void this.#stopClocks()
    else this.#parked.release(of)
    this.#turns.take()
  }

  /** Has the tasks parked whose wait for a slot is bounded: a pause does not count. Others follow when a slot is free. */
  async #stopClocks(): Promise<void> {
    try {
      await runCooperatively(this.#parkAll([...this.#queueWaits.tasks]))
    } catch (error) {
      this.#break(error)
    }
  }

  *#parkAll(tasks: readonly Task[]): Steps<void> {
    yield* inRanges(tasks.length, (from, to) => {
      for (const task of tasks.slice(from, to)) this.#parkQueued(task)
    })
  }

  /** False if `task` has an attempt, or is not paused. */
  #parkQueued(task: Task): boolean {
    if (this.#attempts.of(task) !== undefined || !this.#parked.keep(task)) return false
    this.#ready.withdraw(task)
    return true
  }

  /** What `task` waits in, now that only its list, its answer or a free slot stands in its way. */
  #queueFor(task: Task): { push(task: Task): void } {
    if (hasChildren(task.options)) return this.#fanOuts
    return isApproval(task) || isWait(task) ? this.#asked : this.#ready
  }

  /** Ends an attempt whose work has not started in time. It may be without a slot, and so not exist yet. */
  #waitedTooLong(task: Task): void {
    const attempt = this.#attempts.of(task)
    if (attempt !== undefined) {
      attempt.waitedTooLong()
      return
    }
    if (this.#parkQueued(task)) return
    this.#ready.withdraw(task)
    this.#outcomes.missed(task, waitedTooLong())
  }

  /** Stops for good after a defect. */
  #break(error: unknown): void {
    if (this.#fault !== undefined) return
    this.#fault = `the scheduler has stopped: ${messageOf(error)}`
    this.#turns.stop()
    this.#fanOuts.stop()
    this.#asked.stop()
    this.#backoffs.stop()
    this.#delays.stop()
    this.#queueWaits.stop()
    this.#log.error('the scheduler has stopped because of a defect: no task is started any more', {
      cause: stackOf(error),
    })
    this.#onFault(this.#fault)
  }
}
