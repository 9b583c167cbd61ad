/**
 * The tasks in memory, and the one function that changes them.
 *
 * `apply` checks that a change is allowed, makes it, numbers it and calls the watchers: counters, retention,
 * persistence. Sequence numbers rise and never repeat. Only `apply` changes tasks of accepted graphs.
 *
 * To accept a large graph takes longer than one turn of the event loop may. So `claim` reserves its ids in steps, while
 * callers do not see the graph. Then `apply` with `graph-accepted` makes all of it visible at once.
 */

import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Change, TaskChange } from './change.ts'
import { changeTask } from './change-task.ts'
import type { FanOut } from './fan-out.ts'
import type { Graph, Task } from './graph.ts'
import { reviveTask } from './retry.ts'
import { storedBytes } from './stored-bytes.ts'
import { TaskCount } from './task-count.ts'
import { TaskIds } from './task-ids.ts'
import { TaskWaiters } from './task-waiters.ts'

/** `before` is the status of the task before the change. It is undefined if a whole graph changed. */
export type Watcher = (change: Change, seq: number, before: TaskStatus | undefined) => void

export class TaskStore {
  /** Whether callers find tasks within their graphs only, as those with a tenant do. */
  readonly areIdsOfGraphs: boolean = false
  readonly #ids = new TaskIds()
  readonly #paused = new Set<Graph>()
  readonly #graphs = new Map<string, Graph>()
  readonly #endWaiters = new TaskWaiters()
  readonly #changeWaiters = new TaskWaiters()
  readonly #askWaiters = new TaskWaiters()
  #watchers: readonly Watcher[] = []
  /** Deleted tasks whose attempts continue. */
  readonly hiddenRunning = new Set<Task>()
  #seq: number
  #ordinal: number
  readonly #count = new TaskCount()
  #storedBytes = 0

  /** `lastSeq` and `lastOrdinal` are the highest numbers of earlier runs. */
  constructor({ lastSeq = 0, lastOrdinal = 0 }: { lastSeq?: number; lastOrdinal?: number } = {}) {
    this.#seq = lastSeq
    this.#ordinal = lastOrdinal
  }

  /** Called when a task no longer refers to a result file. */
  onResultDropped: (file: ResultFile) => void = () => {}

  /** Called once for each ended task that was deleted or retired, except for tasks with reused outcomes. */
  onForgotten: (task: Task) => void = () => {}

  /** Called when callers find an ended task only within its graph from now on, because a new graph has taken its id. */
  onReplaced: (task: Task) => void = () => {}

  /** A number for a new graph. Numbers are never reused. */
  nextOrdinal(): number {
    return ++this.#ordinal
  }

  /** The sequence number of the last change. */
  get seq(): number {
    return this.#seq
  }

  /** The number of the last graph. */
  get ordinal(): number {
    return this.#ordinal
  }

  /** Changes and graphs get numbers above `number` from now on. */
  raise(number: number): void {
    this.#seq = Math.max(this.#seq, number)
    this.#ordinal = Math.max(this.#ordinal, number)
  }

  /** Number of tasks in accepted graphs that were not deleted or retired. */
  get taskCount(): number {
    return this.#count.all
  }

  /** The part of `taskCount` that is in ended graphs. */
  get endedTaskCount(): number {
    return this.#count.ofEndedGraphs
  }

  /** Bytes of the results and resolved inputs of graphs that were not retired. */
  get storedBytes(): number {
    return this.#storedBytes
  }

  /** Accepted graphs, in the order of their acceptance. */
  get graphs(): Iterable<Graph> {
    return this.#graphs.values()
  }

  /** Number of accepted graphs. */
  get graphCount(): number {
    return this.#graphs.size
  }

  /** Number of graphs that are paused themselves. */
  get pausedCount(): number {
    return this.#paused.size
  }

  /** The accepted graph with this id. Undefined if callers see none of its tasks. */
  graph(id: string): Graph | undefined {
    const graph = this.#graphs.get(id)
    return graph === undefined || graph.isRetired || graph.visible === 0 ? undefined : graph
  }

  /** The task that callers find under `id`. */
  get(id: string): Task | undefined {
    return this.#ids.visible(id)
  }

  /** The task that callers find under `id` within `graph`. */
  taskIn(graph: Graph, id: string): Task | undefined {
    return this.#ids.inGraph(graph, id)
  }

  /** Visible tasks of `graphs` by creation and position. Leaves out later graphs; the store may change meanwhile. */
  visibleTasks(graphs: Iterable<Graph> = this.graphs): Generator<Task> {
    return this.#tasksOf(graphs, (task) => this.isVisible(task))
  }

  /** As `visibleTasks`, including tasks that callers find only within their graphs. */
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

  /**
   * Whether callers find `task` under its id, as `get` does. Looks at the task alone: to look its id up took a quarter of
   * the time of a list.
   */
  isVisible(task: Task): boolean {
    const { graph, removal, childOf } = task
    const isOfService = !graph.isScoped && childOf === undefined
    return removal === undefined && isOfService && graph.isAccepted && !graph.isRetired
  }

  /** Whether callers find `task` under its id or within its graph. */
  hasRecord(task: Task): boolean {
    return !task.isDeleted && !task.graph.isRetired
  }

  /** Whether the claimed `graph` replaces tasks when it is accepted. */
  replaces(graph: Graph): boolean {
    return this.#ids.replaces(graph)
  }

  /** The tasks that the claimed `graph` replaces when it is accepted. */
  replacedBy(graph: Graph): Iterable<Task> {
    return this.#ids.replacedBy(graph)
  }

  /** Callers find the ended `task` only within its graph from now on: another service has a task with its id. */
  replaceElsewhere(task: Task): void {
    task.removal = 'replaced'
    this.#ids.addInGraph(task)
    this.#ids.release(task)
  }

  /** Why no graph can claim `id` now; undefined if one can. */
  whyTaken(id: string): string | undefined {
    return this.#ids.whyTaken(id)
  }

  /** Claims the ids of `graph`. Throws 409 if one is taken; then nothing has changed. */
  *claim(graph: Graph): Steps<void> {
    yield* inRanges(graph.tasks.length, (from, to) => this.#ids.claim(graph, from, to))
  }

  /** As `claim`, in one step. For small graphs. */
  claimNow(graph: Graph): void {
    this.#ids.claim(graph, 0, graph.tasks.length)
  }

  /** Gives back the ids of a claimed graph that is refused. */
  unclaim(graph: Graph): void {
    this.#ids.unclaim(graph, graph.tasks.length)
  }

  /** Makes `change`. Throws if it is not allowed, which is a defect of the service. */
  apply(change: Change): void {
    const seq = change.kind === 'graph-recovered' ? this.#seq : ++this.#seq
    let before: TaskStatus | undefined
    let ended: Graph | undefined
    switch (change.kind) {
      case 'graph-accepted':
        this.#accept(change.graph)
        break
      case 'graph-recovered':
        this.#recovered(change.graph)
        break
      case 'graph-retired':
        this.#retire(change.graph)
        break
      case 'graph-paused':
        change.graph.pause = change.pause
        this.#paused.add(change.graph)
        break
      case 'graph-resumed':
      case 'graph-ended':
        change.graph.pause = undefined
        this.#paused.delete(change.graph)
        break
      case 'tasks-retried':
        this.#retry(change)
        break
      case 'graph-patched':
        this.#patch(change, seq)
        if (change.graph.live === 0) ended = change.graph
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

  /**
   * All of a graph in one turn of the event loop: nobody sees some of them only. What takes longest, their records, was made
   * before.
   */
  #retry({ graph, edges, tasks, revived, lists, at }: Extract<Change, { kind: 'tasks-retried' }>): void {
    if (graph.endedAt !== undefined) this.#count.graphRevived(graph)
    graph.endedAt = undefined
    graph.isAtEnd = false
    graph.isCancelled = false
    for (const [i, task] of tasks.entries()) {
      const rare = revived[i]
      if (rare === undefined) continue
      const before = storedBytes(task)
      const { result } = task
      reviveTask(task, rare, at)
      if (result instanceof ResultFile) this.onResultDropped(result)
      this.#countBytes(graph, storedBytes(task) - before)
      task.seq = ++this.#seq
      graph.live++
      this.#changeWaiters.notify(task)
    }
    for (const [{ fanOut }, items] of lists) fanOut!.restart(items)
    graph.waitAgain(edges, tasks)
  }

  /** In one turn of the event loop, as `#retry`. */
  #patch(change: Extract<Change, { kind: 'graph-patched' }>, seq: number): void {
    const { graph, added, removed, patched, task_id, at } = change
    for (const task of removed) {
      this.#hide(task)
      this.#ids.release(task)
    }
    graph.patch(change)
    graph.patched = patched
    for (const task of added) {
      task.seq = seq
      task.setRare('added', patched.revision)
      task.setRare('added_by', task_id)
    }
    graph.visible += added.length
    this.#count.add(graph, added.length)
    graph.live += added.length - removed.length
    for (const task of this.#ids.addPatched(graph, added)) {
      task.removal = 'replaced'
      this.onReplaced(task)
    }
    if (graph.live === 0) {
      graph.endedAt = at
      this.#count.graphEnded(graph)
    }
    for (const task of removed) {
      this.#changeWaiters.notify(task)
      this.#endWaiters.notify(task)
    }
  }

  /** Whether a graph that is being submitted takes over the id of `task`. */
  isBeingReplaced(task: Task): boolean {
    return this.#ids.isBeingReplaced(task)
  }

  /** A number for a change that recovery made. */
  nextSeq(): number {
    return ++this.#seq
  }

  #applyToTask(change: TaskChange): void {
    if (change.kind === 'deleted') {
      this.#delete(change.task, change.at)
      return
    }
    const { input_file: inputFile } = change.task.rare
    const isStoring = change.kind === 'ended' || change.kind === 'input-resolved'
    const before = isStoring ? storedBytes(change.task) : 0
    changeTask(change)
    if (isStoring) this.#countBytes(change.task.graph, storedBytes(change.task) - before)
    if (change.kind === 'asked') this.#askWaiters.notify(change.task)
    if (change.kind === 'fanned-out') this.#addChildren(change.fanOut, change.children)
    if (change.kind !== 'ended') return
    if (inputFile !== undefined) this.onResultDropped(inputFile)
    this.#leave(change.task.graph, change.at)
    if (change.task.isDeleted) this.#forget(change.task)
    this.#endWaiters.notify(change.task)
  }

  /**
   * Callers see new children of a task, as pending: in one turn of the event loop, so that nobody sees some of them only. It
   * takes 2 to 10 ms for the 10,000 children that are allowed by default, and 50 to 70 ms for the 100,000 that
   * `--max-fan-out` may allow, most of it for their ids.
   */
  #addChildren(fanOut: FanOut<Task>, children: readonly Task[]): void {
    if (children.length === 0) return
    const { graph } = fanOut.parent
    graph.addChildren(fanOut, children)
    graph.live += children.length
    graph.visible += children.length
    this.#count.add(graph, children.length)
    this.#ids.addChildren(graph, children)
  }

  #delete(task: Task, at: number): void {
    this.#hide(task)
    const neverRuns = task.status === 'pending' && !task.goesOnElsewhere
    if (neverRuns) this.#leave(task.graph, at)
    if (neverRuns || task.isTerminal) this.#forget(task)
    else this.hiddenRunning.add(task)
    this.#endWaiters.notify(task)
  }

  /** Called when a task of `graph` has ended, or was deleted before it started. */
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

  #countBytes(graph: Graph, more: number): void {
    graph.storedBytes += more
    if (!graph.isRetired) this.#storedBytes += more
  }

  /** Frees the id and the result of a hidden task without a running attempt. The last task frees the graph. */
  #forget(task: Task): void {
    this.#ids.release(task)
    this.hiddenRunning.delete(task)
    if (task.result instanceof ResultFile) this.onResultDropped(task.result)
    if (task.rare.input_file !== undefined) this.onResultDropped(task.rare.input_file)
    if (task.isTerminal && task.rare.reused_from === undefined) this.onForgotten(task)
    this.#countBytes(task.graph, -storedBytes(task))
    task.result = undefined
    task.setRare('resolved_input', undefined)
    task.setRare('input_file', undefined)
    task.setRare('progress', undefined)
    task.setRare('attempts', undefined)
    if (task.graph.visible > 0 || task.graph.live > 0) return
    this.#graphs.delete(task.graph.id)
    this.#ids.forgetGraph(task.graph)
  }

  #accept(graph: Graph): void {
    // A replaced task may have been deleted or retired while the graph was written to disk.
    for (const task of this.#ids.settle(graph)) {
      if (task.isDeleted) continue
      task.removal = 'replaced'
      this.onReplaced(task)
    }
    graph.acceptedSeq = this.#seq
    graph.visible = graph.tasks.length
    this.#count.add(graph, graph.visible)
    graph.isAccepted = true
    this.#graphs.set(graph.id, graph)
  }

  #retire(graph: Graph): void {
    this.#count.add(graph, -graph.visible)
    graph.isRetired = true
    this.#storedBytes -= graph.storedBytes
    void runCooperatively(this.#free(graph.tasks))
  }

  /** Frees retired tasks, in several turns of the event loop. Callers no longer see them. */
  *#free(tasks: readonly Task[]): Steps<void> {
    for (let i = 0; i < tasks.length; i++) {
      const task = tasks[i]!
      // Deleted tasks have been freed before.
      if (!task.isDeleted) {
        this.#hide(task)
        this.#forget(task)
      }
      if (isYieldDue(i)) yield
    }
  }

  /** Adds a graph of an earlier run, or of another replica. Callers find nothing of it before the last step. */
  *recover(graph: Graph): Steps<void> {
    yield* inRanges(graph.tasks.length, (from, to) => {
      for (let i = from; i < to; i++) this.#addRecovered(graph.tasks[i]!)
    })
    this.apply({ kind: 'graph-recovered', graph })
  }

  #addRecovered(task: Task): void {
    const { graph } = task
    this.#countBytes(graph, storedBytes(task))
    if (!task.isDeleted) {
      if (graph.isScoped || task.isReplaced || task.childOf !== undefined) this.#ids.addInGraph(task)
      else this.#ids.add(task)
      graph.visible++
    } else if (task.goesOnElsewhere) {
      this.hiddenRunning.add(task)
      // An earlier version may have given its id to another task.
      if (!graph.isScoped && task.childOf === undefined) this.#ids.addIfFree(task)
    }
  }

  /** The tasks have their ids already. */
  #recovered(graph: Graph): void {
    if (graph.pause !== undefined) this.#paused.add(graph)
    this.#count.add(graph, graph.visible)
    graph.isAccepted = true
    this.#graphs.set(graph.id, graph)
  }

  /** Calls `watcher` after every change, in order. `watcher` must not throw. Returns a function that ends the calls. */
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

  /** Resolves when the next of `subjects` waits for an approval from now on, or when `signal` fires. */
  whenAnyAsked(subjects: readonly (Task | Graph)[], signal: AbortSignal): Promise<void> {
    return this.#askWaiters.wait(subjects, signal)
  }

  /** Resolves after the next change of `task`, or when `signal` fires. */
  whenChanged(task: Task, signal: AbortSignal): Promise<void> {
    return this.#changeWaiters.wait([task], signal)
  }
}
