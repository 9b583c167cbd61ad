/**
 * Maps ids to tasks, in the service and within graphs. An id of a task that has not ended is refused with 409.
 *
 * A graph claims the ids of its tasks before it is accepted; callers do not see it until then. A claim may take over
 * ids of terminal tasks. Callers see the previous tasks until the graph is accepted. From then on, only their own graph
 * knows them. If the graph is refused, the previous tasks keep their ids. A scoped graph claims no ids of the service, nor
 * do children of tasks with `for_each`.
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { Graph, Task } from './graph.ts'
import { IdMap } from './id-map.ts'

/** Maximum tasks of a graph without an index. A linear search of that many tasks takes a few µs. */
const MAX_SEARCHED_TASKS = 256

export class TaskIds {
  /** Tasks of the service by id, including claimed ones. */
  readonly #tasks = new IdMap<Task>()
  /** For each graph with an index, the tasks that only the graph knows. */
  readonly #inGraphs = new Map<Graph, IdMap<Task>>()
  /** For each claimed graph, the terminal tasks that it will replace. */
  readonly #replaced = new Map<Graph, Map<string, Task>>()

  /** The task that callers see under `id`. */
  visible(id: string): Task | undefined {
    const task = this.#tasks.get(id)
    const seen = task === undefined || task.graph.isAccepted ? task : this.#replaced.get(task.graph)?.get(id)
    return seen === undefined || seen.isDeleted || seen.graph.isRetired ? undefined : seen
  }

  /** The task of an accepted graph with this id. */
  inGraph(graph: Graph, id: string): Task | undefined {
    const holder = this.#tasks.get(id)
    const task = holder?.graph === graph ? holder : this.#ownOf(graph, id)
    return task === undefined || task.isDeleted || graph.isRetired ? undefined : task
  }

  #ownOf(graph: Graph, id: string): Task | undefined {
    if (graph.tasks.length > MAX_SEARCHED_TASKS) return this.#inGraphs.get(graph)?.get(id)
    return graph.tasks.find((task) => task.id === id)
  }

  /** Adds `task` to the index of its graph. */
  addInGraph(task: Task): void {
    const { graph } = task
    if (graph.tasks.length <= MAX_SEARCHED_TASKS) return
    let tasks = this.#inGraphs.get(graph)
    if (tasks === undefined) {
      tasks = new IdMap()
      this.#inGraphs.set(graph, tasks)
    }
    tasks.put(task)
  }

  /** Lets callers find new `children` below `graph`, which has them already. */
  addChildren(graph: Graph, children: readonly Task[]): void {
    const wasSearched = graph.tasks.length - children.length <= MAX_SEARCHED_TASKS
    for (const task of wasSearched ? graph.tasks : children) this.addInGraph(task)
  }

  /**
   * Gives new tasks of an accepted `graph`, which has them already, their ids. None of these is taken. Returns the ended tasks
   * of other graphs that had them.
   */
  addPatched(graph: Graph, added: readonly Task[]): Task[] {
    const replaced: Task[] = []
    for (const task of graph.isScoped ? [] : added) {
      const holder = this.#tasks.put(task)
      if (holder === undefined || holder.isDeleted || holder.graph.isRetired) continue
      this.addInGraph(holder)
      replaced.push(holder)
    }
    this.addChildren(graph, added)
    return replaced
  }

  /** Drops the index of `graph`. */
  forgetGraph(graph: Graph): void {
    this.#inGraphs.delete(graph)
  }

  /**
   * Claims the ids of the tasks from `from` to `to`. Throws 409 if one is taken, and gives back all ids that `graph`
   * has claimed so far. Ids of a scoped graph cannot be taken. Whether an id is in the graph twice is checked
   * elsewhere.
   */
  claim(graph: Graph, from: number, to: number): void {
    if (graph.isScoped) {
      for (let i = from; i < to; i++) this.addInGraph(graph.tasks[i]!)
      return
    }
    for (let i = from; i < to; i++) {
      const task = graph.tasks[i]!
      const holder = this.#tasks.put(task)
      if (holder === undefined || holder.graph.isRetired) continue
      if (isTaken(holder)) {
        this.#tasks.put(holder)
        this.unclaim(graph, i)
        throw new ServiceError(409, takenText(holder))
      }
      this.#replacedBy(graph).set(task.id, holder)
      this.addInGraph(holder)
    }
  }

  /** Why no graph can claim `id` now; undefined if one can. */
  whyTaken(id: string): string | undefined {
    const holder = this.#tasks.get(id)
    return holder !== undefined && !holder.graph.isRetired && isTaken(holder) ? takenText(holder) : undefined
  }

  /** Whether a claimed graph takes over the id of `task`. */
  isBeingReplaced(task: Task): boolean {
    const holder = this.#tasks.get(task.id)
    return holder !== undefined && this.#replaced.get(holder.graph)?.get(task.id) === task
  }

  #replacedBy(graph: Graph): Map<string, Task> {
    let replaced = this.#replaced.get(graph)
    if (replaced === undefined) {
      replaced = new Map()
      this.#replaced.set(graph, replaced)
    }
    return replaced
  }

  /** Gives the first `count` claimed ids back to their previous tasks. */
  unclaim(graph: Graph, count: number): void {
    this.forgetGraph(graph)
    if (graph.isScoped) return
    const replaced = this.#replaced.get(graph)
    for (const task of graph.tasks.slice(0, count)) {
      if (this.#tasks.get(task.id) !== task) continue // a graph of another service has it, and was adopted meanwhile
      const holder = replaced?.get(task.id)
      if (holder === undefined || holder.isDeleted || holder.graph.isRetired) this.#tasks.remove(task)
      else this.#tasks.put(holder)
    }
    this.#replaced.delete(graph)
  }

  /** Whether the claim of `graph` takes over ids of other tasks. */
  replaces(graph: Graph): boolean {
    return this.#replaced.has(graph)
  }

  /** The tasks whose ids the claim of `graph` takes over. */
  replacedBy(graph: Graph): Iterable<Task> {
    return this.#replaced.get(graph)?.values() ?? []
  }

  /** Makes the claim of `graph` final. Returns the tasks that it replaces. */
  settle(graph: Graph): Iterable<Task> {
    const replaced = this.#replaced.get(graph)
    this.#replaced.delete(graph)
    return replaced?.values() ?? []
  }

  /** Gives `task` its id without a claim. */
  add(task: Task): void {
    this.#tasks.put(task)
  }

  /** Gives `task` its id unless another task has it. */
  addIfFree(task: Task): void {
    if (this.#tasks.get(task.id) === undefined) this.#tasks.put(task)
  }

  /** Frees the id of `task` unless another task has taken it over. */
  release(task: Task): void {
    this.#tasks.remove(task)
  }
}

/** The graph of `holder` is being submitted, or the task has not ended. */
const isTaken = (holder: Task): boolean => !holder.graph.isAccepted || !holder.isTerminal

const takenText = ({ id, graph }: Task): string =>
  `task already active: ${id} (in graph ${graph.id}; "scope": "graph" gives the tasks of a graph ids of their own)`
