/**
 * The tasks in memory, and the one function through which every change of them passes.
 *
 * `apply` checks that the change is allowed, changes the task, numbers the change and tells the watchers: counters,
 * long-polls, the snapshot's "something changed". Sequence numbers rise and never repeat. Nobody else writes to a task.
 *
 * Taking in a graph has two steps, because a large one takes longer than one turn of the event loop: `claim` takes its
 * ids, in slices, while nobody sees it; `apply` with `graph-accepted` makes all of it visible at once.
 */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { ServiceError } from '../../shared/errors.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/steps.ts'
import { attemptRecord, interrupted, withAttempt } from '../graph/attempt-record.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { ResultFile } from '../graph/result-file.ts'
import { mayFollow } from '../graph/transitions.ts'
import type { Change, Ending } from './change.ts'
import { IdMap } from './id-map.ts'

/** `before` is the status of the task before the change; undefined for a change of a whole graph. */
export type Watcher = (change: Change, seq: number, before: TaskStatus | undefined) => void

/** Entries of `progress` that a task keeps; older ones go first. */
const MAX_PROGRESS_ENTRIES = 100

export class TaskStore {
  /** By id; holds claimed tasks too. */
  readonly #tasks = new IdMap<Task>()
  readonly #graphs = new Set<Graph>()
  /** Terminal tasks whose ids a claimed graph takes over once it is accepted. */
  readonly #replaced = new Map<Graph, Map<string, Task>>()
  #watchers: readonly Watcher[] = []
  /** Who waits for the end of a task, or of any task of a graph. */
  readonly #awaitingEnd = new Map<Task | Graph, Set<() => void>>()
  /** Deleted tasks whose attempts go on. */
  readonly hiddenRunning = new Set<Task>()
  #seq: number
  #ordinal: number
  #taskCount = 0
  #endedTaskCount = 0

  /** `lastSeq` and `lastOrdinal` are the highest numbers that an earlier run has given out. */
  constructor({ lastSeq = 0, lastOrdinal = 0 }: { lastSeq?: number; lastOrdinal?: number } = {}) {
    this.#seq = lastSeq
    this.#ordinal = lastOrdinal
  }

  /** Called when nobody can ask for a result that lies in a file any more. */
  onResultDropped: (file: ResultFile) => void = () => {}

  /** Called once for each ended task that callers cannot see any more: it was deleted, replaced or retired. */
  onForgotten: (task: Task) => void = () => {}

  /** A number for a new graph; none is given out twice. */
  nextOrdinal(): number {
    return ++this.#ordinal
  }

  /** The sequence number of the last change. */
  get seq(): number {
    return this.#seq
  }

  /** Tasks that are held: all of accepted graphs but those that were deleted, replaced or retired. */
  get taskCount(): number {
    return this.#taskCount
  }

  /** Of these, the tasks of graphs that have ended. */
  get endedTaskCount(): number {
    return this.#endedTaskCount
  }

  /** Accepted graphs, in the order of their acceptance. */
  get graphs(): Iterable<Graph> {
    return this.#graphs
  }

  /** The task that callers see under `id`. */
  get(id: string): Task | undefined {
    const task = this.#tasks.get(id)
    const seen = task === undefined || task.graph.isAccepted ? task : this.#replaced.get(task.graph)?.get(id)
    return seen === undefined || seen.isDeleted || seen.graph.isRetired ? undefined : seen
  }

  /** Visible tasks of `graphs`, in order of creation, then of position, as of now; safe while the store changes. */
  *visibleTasks(graphs: Iterable<Graph> = this.#graphs): Generator<Task> {
    const until = this.#seq
    for (const graph of graphs) {
      if (graph.acceptedSeq > until) return
      if (graph.isRetired) continue
      for (const task of graph.tasks) if (this.isVisible(task)) yield task
    }
  }

  /** Whether `task` is what callers see under its id: neither deleted nor replaced. */
  isVisible(task: Task): boolean {
    return !task.isDeleted && this.get(task.id) === task
  }

  /** Takes the ids of `graph`, or throws 409 and leaves everything as it was. */
  *claim(graph: Graph): Steps<void> {
    yield* inRanges(graph.tasks.length, (from, to) => this.claimSome(graph, from, to))
  }

  /** As `claim`, for the tasks from `from` to `to`; those before them must be claimed already. */
  claimSome(graph: Graph, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const task = graph.tasks[i]!
      const shard = this.#tasks.shardOf(task.id)
      const holder = shard.get(task.id)
      if (holder !== undefined && !holder.graph.isRetired) {
        if (!holder.graph.isAccepted || !holder.isTerminal) {
          this.unclaim(graph, i)
          throw new ServiceError(409, `task already active: ${task.id}`)
        }
        this.#replacedBy(graph).set(task.id, holder)
      }
      shard.set(task.id, task)
    }
  }

  #replacedBy(graph: Graph): Map<string, Task> {
    let replaced = this.#replaced.get(graph)
    if (replaced === undefined) {
      replaced = new Map()
      this.#replaced.set(graph, replaced)
    }
    return replaced
  }

  /** Gives the first `count` claimed ids back to whom they belonged: all of them when the graph is refused after all. */
  unclaim(graph: Graph, count = graph.tasks.length): void {
    const replaced = this.#replaced.get(graph)
    for (const task of graph.tasks.slice(0, count)) {
      const holder = replaced?.get(task.id)
      if (holder === undefined || holder.isDeleted || holder.graph.isRetired) this.#tasks.delete(task.id)
      else this.#tasks.set(task.id, holder)
    }
    this.#replaced.delete(graph)
  }

  /** Makes `change` true. Throws when it is not allowed, which would be a mistake of ours. */
  apply(change: Change): void {
    const seq = ++this.#seq
    let before: TaskStatus | undefined
    switch (change.kind) {
      case 'graph-accepted':
        this.#accept(change.graph)
        break
      case 'graph-recovered':
        this.#recover(change.graph)
        break
      case 'graph-retired':
        this.#count(change.graph, -change.graph.visible)
        change.graph.isRetired = true
        void runCooperatively(this.#free(change.graph.tasks))
        break
      default:
        before = change.task.status
        change.task.seq = seq
        change.task.updatedAt = change.at
        this.#applyToTask(change)
    }
    for (const watcher of this.#watchers) watcher(change, seq, before)
  }

  #applyToTask(change: Exclude<Change, { graph: Graph }>): void {
    const { task, at } = change
    switch (change.kind) {
      case 'attempt-started':
        if (task.status !== 'running') this.#moveTo(task, 'running')
        task.isBackingOff = false
        task.startedAt ??= at
        task.failure = undefined
        if (task.handle !== undefined) break // it goes on
        task.attempt++
        task.attemptStartedAt = at
        break
      case 'process-started':
        task.process = change.process
        break
      case 'handed-over':
        task.handle = change.handle
        break
      case 'attempt-failed':
        task.attempts = withAttempt(task.attempts, attemptRecord(task, at, change.failure, change.output))
        task.process = undefined
        task.handle = undefined
        task.isBackingOff = true
        task.failure = change.failure
        break
      case 'attempt-interrupted':
        this.#moveTo(task, 'pending')
        task.process = undefined
        task.isBackingOff = false
        if (change.goesOn) break
        task.attempts = withAttempt(task.attempts, attemptRecord(task, at, interrupted(change.reason)))
        task.handle = undefined
        task.interruptedAttempts++
        break
      case 'cancel-requested':
        this.#moveTo(task, 'cancelling')
        break
      case 'progress': {
        task.progress ??= []
        const { message, data } = change
        task.progress.push({
          timestamp: new Date(at).toISOString(),
          ...(message !== undefined && { message }),
          ...(data !== undefined && { data }),
        })
        if (task.progress.length > MAX_PROGRESS_ENTRIES) task.progress.shift()
        break
      }
      case 'ended':
        this.#end(task, at, change.ending)
        break
      case 'deleted':
        this.#hide(task)
        if (task.status === 'pending' && !task.goesOnElsewhere) this.#leave(task.graph, at)
        if (task.isTerminal || (task.status === 'pending' && !task.goesOnElsewhere)) this.#forget(task)
        else this.hiddenRunning.add(task)
        this.#tellWaiting(task)
    }
  }

  #moveTo(task: Task, status: TaskStatus): void {
    if (!mayFollow(task.status, status)) throw new Error(`task ${task.id} cannot go from ${task.status} to ${status}`)
    task.status = status
  }

  #end(task: Task, at: number, ending: Ending): void {
    this.#moveTo(task, ending.status)
    task.process = undefined
    task.isBackingOff = false
    this.#leave(task.graph, at)
    task.finishedAt = at
    if (task.attempts !== undefined && ending.status !== 'skipped') {
      const failure = ending.status === 'success' ? undefined : ending.failure
      task.attempts = withAttempt(task.attempts, attemptRecord(task, at, failure, ending.output))
    }
    if (ending.status !== 'success') task.errorText = ending.error
    if (ending.status === 'success') task.result = ending.result
    else if (ending.status !== 'skipped') {
      task.result = ending.result
      task.failure = ending.failure
    }
    if (task.isDeleted) this.#forget(task)
    this.#tellWaiting(task)
  }

  /** One task of `graph` less that has not ended. */
  #leave(graph: Graph, at: number): void {
    if (--graph.live > 0) return
    graph.endedAt = at
    if (!graph.isRetired) this.#endedTaskCount += graph.visible
  }

  /** `graph` shows `more` tasks than before. */
  #count(graph: Graph, more: number): void {
    this.#taskCount += more
    if (graph.endedAt !== undefined) this.#endedTaskCount += more
  }

  #hide(task: Task): void {
    if (task.isDeleted) return
    if (!task.graph.isRetired) this.#count(task.graph, -1)
    task.isDeleted = true
    task.graph.visible--
  }

  /** Frees what a hidden task that has no process any more holds: its id, its result, at last its graph. */
  #forget(task: Task): void {
    if (this.#tasks.get(task.id) === task) this.#tasks.delete(task.id)
    this.hiddenRunning.delete(task)
    if (task.result instanceof ResultFile) this.onResultDropped(task.result)
    if (task.isTerminal) this.onForgotten(task)
    task.result = undefined
    task.progress = undefined
    task.attempts = undefined
    if (task.graph.visible === 0 && task.graph.live === 0) this.#graphs.delete(task.graph)
  }

  #accept(graph: Graph): void {
    const replaced = this.#replaced.get(graph)
    if (replaced !== undefined) {
      this.#replaced.delete(graph)
      void runCooperatively(this.#free([...replaced.values()]))
    }
    graph.acceptedSeq = this.#seq
    graph.visible = graph.tasks.length
    this.#taskCount += graph.visible
    graph.isAccepted = true
    this.#graphs.add(graph)
  }

  /** Frees what replaced or retired tasks hold. Nobody sees them any more, so there is time. */
  *#free(tasks: readonly Task[]): Steps<void> {
    for (let i = 0; i < tasks.length; i++) {
      const task = tasks[i]!
      // A task that was deleted before is forgotten already.
      if (!task.isDeleted) {
        this.#hide(task)
        this.#forget(task)
      }
      if (isYieldDue(i)) yield
    }
  }

  #recover(graph: Graph): void {
    for (const task of graph.tasks) {
      if (task.isDeleted) {
        if (task.goesOnElsewhere) this.#recoverHidden(task)
        continue
      }
      this.#tasks.set(task.id, task)
      graph.visible++
    }
    this.#count(graph, graph.visible)
    graph.isAccepted = true
    this.#graphs.add(graph)
  }

  /** A deleted task keeps its id until its attempt has ended. Earlier versions gave it away at a restart. */
  #recoverHidden(task: Task): void {
    this.hiddenRunning.add(task)
    if (this.#tasks.get(task.id) === undefined) this.#tasks.set(task.id, task)
  }

  /** Calls `watcher` after every change, in order. It must not throw. Returns what ends this. */
  watch(watcher: Watcher): () => void {
    this.#watchers = [...this.#watchers, watcher]
    return () => {
      this.#watchers = this.#watchers.filter((other) => other !== watcher)
    }
  }

  /** Resolves when `task` has ended or was deleted, or when `signal` fires. */
  whenEnded(task: Task, signal: AbortSignal): Promise<void> {
    return task.isTerminal || task.isDeleted ? Promise.resolve() : this.whenAnyEnds([task], signal)
  }

  /**
   * Resolves when the next of `subjects` ends or is deleted, or when `signal` fires. A graph stands for all of its tasks:
   * waiting for 100,000 of them costs as much as waiting for one. There is one listener on `signal`, however many subjects.
   */
  whenAnyEnds(subjects: readonly (Task | Graph)[], signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const stop = () => {
        signal.removeEventListener('abort', stop)
        for (const subject of subjects) {
          const waiting = this.#awaitingEnd.get(subject)
          if (waiting?.delete(stop) && waiting.size === 0) this.#awaitingEnd.delete(subject)
        }
        resolve()
      }
      for (const subject of subjects) {
        const waiting = this.#awaitingEnd.get(subject) ?? new Set()
        this.#awaitingEnd.set(subject, waiting.add(stop))
      }
      signal.addEventListener('abort', stop)
    })
  }

  #tellWaiting(task: Task): void {
    if (this.#awaitingEnd.size === 0) return
    for (const stop of [...(this.#awaitingEnd.get(task) ?? []), ...(this.#awaitingEnd.get(task.graph) ?? [])]) stop()
  }
}
