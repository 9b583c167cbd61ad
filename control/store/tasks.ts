/**
 * The tasks in memory, and the one function that changes them.
 *
 * `apply` checks that a change is allowed, makes it, numbers it and calls the watchers: counters, retention,
 * persistence. Sequence numbers rise and never repeat. Nothing else writes to a task of an accepted graph.
 *
 * A large graph takes longer to accept than one turn of the event loop. So `claim` reserves its ids in steps, while no
 * caller sees the graph, and `apply` with `graph-accepted` makes all of it visible at once.
 */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { Change, TaskChange } from './change.ts'
import { changeTask } from './change-task.ts'
import { TaskCount } from './task-count.ts'
import { TaskIds } from './task-ids.ts'
import { TaskWaiters } from './task-waiters.ts'

/** `before` is the status of the task before the change; undefined for a change of a whole graph. */
export type Watcher = (change: Change, seq: number, before: TaskStatus | undefined) => void

export class TaskStore {
  readonly #ids = new TaskIds()
  readonly #graphs = new Map<string, Graph>()
  readonly #endWaiters = new TaskWaiters()
  readonly #changeWaiters = new TaskWaiters()
  #watchers: readonly Watcher[] = []
  /** Deleted tasks with an attempt that continues. */
  readonly hiddenRunning = new Set<Task>()
  #seq: number
  #ordinal: number
  readonly #count = new TaskCount()

  /** `lastSeq` and `lastOrdinal` are the highest numbers that an earlier run has given out. */
  constructor({ lastSeq = 0, lastOrdinal = 0 }: { lastSeq?: number; lastOrdinal?: number } = {}) {
    this.#seq = lastSeq
    this.#ordinal = lastOrdinal
  }

  /** Called when a task does not refer to a result file any more. */
  onResultDropped: (file: ResultFile) => void = () => {}

  /** Called once for each ended task, other than reused ones, that callers no longer see: it was deleted or retired. */
  onForgotten: (task: Task) => void = () => {}

  /** A number for a new graph. Numbers are never reused. */
  nextOrdinal(): number {
    return ++this.#ordinal
  }

  /** The sequence number of the last change. */
  get seq(): number {
    return this.#seq
  }

  /** Number of tasks in accepted graphs that were not deleted or retired. */
  get taskCount(): number {
    return this.#count.all
  }

  /** Of these, the number of tasks in graphs that have ended. */
  get endedTaskCount(): number {
    return this.#count.ofEndedGraphs
  }

  /** Accepted graphs, in the order of their acceptance. */
  get graphs(): Iterable<Graph> {
    return this.#graphs.values()
  }

  /** The accepted graph with this id; undefined if callers see none of its tasks. */
  graph(id: string): Graph | undefined {
    const graph = this.#graphs.get(id)
    return graph === undefined || graph.isRetired || graph.visible === 0 ? undefined : graph
  }

  /** The task that callers see under `id`. */
  get(id: string): Task | undefined {
    return this.#ids.visible(id)
  }

  /** The task of `graph` that callers see below the graph. */
  taskIn(graph: Graph, id: string): Task | undefined {
    return this.#ids.inGraph(graph, id)
  }

  /** Visible tasks of `graphs` as of now, by creation and position. Stays valid while the store changes. */
  visibleTasks(graphs: Iterable<Graph> = this.graphs): Generator<Task> {
    return this.#tasksOf(graphs, (task) => this.isVisible(task))
  }

  /** As `visibleTasks`, with the tasks that callers see below their graphs only. */
  recordedTasks(graphs: Iterable<Graph> = this.graphs): Generator<Task> {
    return this.#tasksOf(graphs, (task) => this.hasRecord(task))
  }

  *#tasksOf(graphs: Iterable<Graph>, isWanted: (task: Task) => boolean): Generator<Task> {
    const until = this.#seq
    for (const graph of graphs) {
      if (graph.acceptedSeq > until) return
      if (graph.isRetired) continue
      for (const task of graph.tasks) if (isWanted(task)) yield task
    }
  }

  /** Whether callers see `task` under its id: it is neither deleted nor replaced, and its graph is not scoped. */
  isVisible(task: Task): boolean {
    return !task.isDeleted && this.get(task.id) === task
  }

  /** Whether callers see `task`, under its id or below its graph. */
  hasRecord(task: Task): boolean {
    return !task.isDeleted && !task.graph.isRetired
  }

  /** Whether the claimed `graph` is about to replace tasks. */
  replaces(graph: Graph): boolean {
    return this.#ids.replaces(graph)
  }

  /** Why no graph can claim `id` now; undefined if one can. */
  whyTaken(id: string): string | undefined {
    return this.#ids.whyTaken(id)
  }

  /** Claims the ids of `graph`, or throws 409 and leaves everything as it was. */
  *claim(graph: Graph): Steps<void> {
    yield* inRanges(graph.tasks.length, (from, to) => this.#ids.claim(graph, from, to))
  }

  /** As `claim`, in one step, for a small graph. */
  claimNow(graph: Graph): void {
    this.#ids.claim(graph, 0, graph.tasks.length)
  }

  /** Gives the ids of a claimed graph back: the graph is refused. */
  unclaim(graph: Graph): void {
    this.#ids.unclaim(graph, graph.tasks.length)
  }

  /** Makes `change` true. Throws if it is not allowed, which would be a defect of ours. */
  apply(change: Change): void {
    const seq = change.kind === 'graph-recovered' ? this.#seq : ++this.#seq
    let before: TaskStatus | undefined
    let ended: Graph | undefined
    switch (change.kind) {
      case 'graph-accepted':
        this.#accept(change.graph)
        break
      case 'graph-recovered':
        this.#recover(change.graph)
        break
      case 'graph-retired':
        this.#retire(change.graph)
        break
      case 'graph-ended':
        break
      default: {
        const { graph } = change.task
        const wasLive = graph.live > 0
        before = change.task.status
        change.task.seq = seq
        change.task.updatedAt = change.at
        this.#applyToTask(change)
        this.#changeWaiters.notify(change.task)
        if (wasLive && graph.live === 0) ended = graph
      }
    }
    for (const watcher of this.#watchers) watcher(change, seq, before)
    if (ended !== undefined) this.apply({ kind: 'graph-ended', graph: ended, at: ended.endedAt! })
  }

  /** A number for what a start changed in tasks that it recovered. */
  nextSeq(): number {
    return ++this.#seq
  }

  #applyToTask(change: TaskChange): void {
    if (change.kind === 'deleted') {
      this.#delete(change.task, change.at)
      return
    }
    const { inputFile } = change.task
    changeTask(change)
    if (change.kind !== 'ended') return
    if (inputFile !== undefined) this.onResultDropped(inputFile)
    this.#leave(change.task.graph, change.at)
    if (change.task.isDeleted) this.#forget(change.task)
    this.#endWaiters.notify(change.task)
  }

  #delete(task: Task, at: number): void {
    this.#hide(task)
    const neverRuns = task.status === 'pending' && !task.goesOnElsewhere
    if (neverRuns) this.#leave(task.graph, at)
    if (neverRuns || task.isTerminal) this.#forget(task)
    else this.hiddenRunning.add(task)
    this.#endWaiters.notify(task)
  }

  /** One more task of `graph` has ended, or never will. */
  #leave(graph: Graph, at: number): void {
    if (--graph.live > 0) return
    graph.endedAt = at
    this.#count.graphEnded(graph)
  }

  #hide(task: Task): void {
    if (task.isDeleted) return
    if (!task.graph.isRetired) this.#count.add(task.graph, -1)
    task.removal = 'deleted'
    task.graph.visible--
  }

  /** Frees the id and the result of a hidden task without a running attempt, and its graph after the last of them. */
  #forget(task: Task): void {
    this.#ids.release(task)
    this.hiddenRunning.delete(task)
    if (task.result instanceof ResultFile) this.onResultDropped(task.result)
    if (task.inputFile !== undefined) this.onResultDropped(task.inputFile)
    if (task.isTerminal && task.reusedFrom === undefined) this.onForgotten(task)
    task.result = undefined
    task.resolvedInput = undefined
    task.inputFile = undefined
    task.progress = undefined
    task.attempts = undefined
    if (task.graph.visible > 0 || task.graph.live > 0) return
    this.#graphs.delete(task.graph.id)
    this.#ids.forgetGraph(task.graph)
  }

  #accept(graph: Graph): void {
    // A replaced task may have been deleted, or retired, while the graph was being written.
    for (const task of this.#ids.settle(graph)) if (!task.isDeleted) task.removal = 'replaced'
    graph.acceptedSeq = this.#seq
    graph.visible = graph.tasks.length
    this.#count.add(graph, graph.visible)
    graph.isAccepted = true
    this.#graphs.set(graph.id, graph)
  }

  #retire(graph: Graph): void {
    this.#count.add(graph, -graph.visible)
    graph.isRetired = true
    void runCooperatively(this.#free(graph.tasks))
  }

  /** Frees retired tasks. No caller sees them any more, so this may take several turns of the event loop. */
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
      if (!task.isDeleted) {
        if (graph.isScoped || task.isReplaced) this.#ids.addInGraph(task)
        else this.#ids.add(task)
        graph.visible++
      } else if (task.goesOnElsewhere) {
        this.hiddenRunning.add(task)
        if (!graph.isScoped) this.#ids.addIfFree(task) // earlier versions gave its id away at a restart
      }
    }
    this.#count.add(graph, graph.visible)
    graph.isAccepted = true
    this.#graphs.set(graph.id, graph)
  }

  /** Calls `watcher` after every change, in order. It must not throw. Returns a function that stops the calls. */
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
   * Resolves when the next of `subjects` ends or is deleted, or when `signal` fires. A graph stands for all of its
   * tasks.
   */
  whenAnyEnds(subjects: readonly (Task | Graph)[], signal: AbortSignal): Promise<void> {
    return this.#endWaiters.wait(subjects, signal)
  }

  /** Resolves after the next change of `task`, or when `signal` fires. */
  whenChanged(task: Task, signal: AbortSignal): Promise<void> {
    return this.#changeWaiters.wait([task], signal)
  }
}
