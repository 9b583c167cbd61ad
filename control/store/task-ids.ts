/**
 * The task that each id belongs to, in the service and in a graph.
 *
 * A graph claims the ids of its tasks before it is accepted; nobody sees the graph until then. A claim takes over ids
 * of terminal tasks. Callers see those tasks until the graph is accepted, and again if it is refused. After that only
 * their graph knows them. A scoped graph claims nothing: its ids are its own from the beginning.
 */
import { ServiceError } from '../../shared/errors.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { IdMap } from './id-map.ts'

/** Tasks of a graph that is searched from its first task on; a longer search would take more than some µs. */
const MAX_SEARCHED_TASKS = 256

export class TaskIds {
  /** Includes claimed tasks. Without those of scoped graphs. */
  readonly #tasks = new IdMap<Task>()
  /** For each graph that is too large to be searched, the tasks that are found below it only. */
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

  /** Lets callers find `task` below its graph. */
  addInGraph(task: Task): void {
    const { graph } = task
    if (graph.tasks.length <= MAX_SEARCHED_TASKS) return
    let tasks = this.#inGraphs.get(graph)
    if (tasks === undefined) {
      tasks = new IdMap()
      this.#inGraphs.set(graph, tasks)
    }
    tasks.set(task.id, task)
  }

  /** Nothing of `graph` is seen any more. */
  forgetGraph(graph: Graph): void {
    this.#inGraphs.delete(graph)
  }

  /**
   * Claims the ids of the tasks from `from` to `to`, or throws 409 and gives back all ids that `graph` has claimed so
   * far. The ids of a scoped graph are free, and nobody checks here whether one stands in it twice.
   */
  claim(graph: Graph, from: number, to: number): void {
    if (graph.isScoped) {
      for (let i = from; i < to; i++) this.addInGraph(graph.tasks[i]!)
      return
    }
    for (let i = from; i < to; i++) {
      const task = graph.tasks[i]!
      const shard = this.#tasks.shardOf(task.id)
      const holder = shard.get(task.id)
      if (holder !== undefined && !holder.graph.isRetired) {
        if (isTaken(holder)) {
          this.unclaim(graph, i)
          throw new ServiceError(409, takenText(task.id))
        }
        this.#replacedBy(graph).set(task.id, holder)
        this.addInGraph(holder)
      }
      shard.set(task.id, task)
    }
  }

  /** Why no graph can claim `id` now; undefined if one can. */
  whyTaken(id: string): string | undefined {
    const holder = this.#tasks.get(id)
    return holder !== undefined && !holder.graph.isRetired && isTaken(holder) ? takenText(id) : undefined
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
      const holder = replaced?.get(task.id)
      if (holder === undefined || holder.isDeleted || holder.graph.isRetired) this.#tasks.delete(task.id)
      else this.#tasks.set(task.id, holder)
    }
    this.#replaced.delete(graph)
  }

  /** Whether the claim of `graph` takes over ids of other tasks. */
  replaces(graph: Graph): boolean {
    return this.#replaced.has(graph)
  }

  /** Makes the claim of `graph` final. Returns the tasks that it replaces. */
  settle(graph: Graph): Iterable<Task> {
    const replaced = this.#replaced.get(graph)
    this.#replaced.delete(graph)
    return replaced?.values() ?? []
  }

  /** Gives `task` its id, which a claim has not done. */
  add(task: Task): void {
    this.#tasks.set(task.id, task)
  }

  /** Gives `task` its id unless another task has it. */
  addIfFree(task: Task): void {
    if (this.#tasks.get(task.id) === undefined) this.#tasks.set(task.id, task)
  }

  /** Frees the id of `task` unless another task has taken it over. */
  release(task: Task): void {
    if (this.#tasks.get(task.id) === task) this.#tasks.delete(task.id)
  }
}

/** The graph of `holder` is being submitted, or the task has not ended. */
const isTaken = (holder: Task): boolean => !holder.graph.isAccepted || !holder.isTerminal

const takenText = (id: string): string => `task already active: ${id}`
