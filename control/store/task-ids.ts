/**
 * The task that each id belongs to.
 *
 * A graph claims the ids of its tasks before it is accepted; nobody sees the graph until then. A claim takes over ids
 * of terminal tasks. Callers see those tasks until the graph is accepted, and again if it is refused.
 */
import { ServiceError } from '../../shared/errors.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { IdMap } from './id-map.ts'

export class TaskIds {
  /** Includes claimed tasks. */
  readonly #tasks = new IdMap<Task>()
  /** For each claimed graph, the terminal tasks that it will replace. */
  readonly #replaced = new Map<Graph, Map<string, Task>>()

  /** The task that callers see under `id`. */
  visible(id: string): Task | undefined {
    const task = this.#tasks.get(id)
    const seen = task === undefined || task.graph.isAccepted ? task : this.#replaced.get(task.graph)?.get(id)
    return seen === undefined || seen.isDeleted || seen.graph.isRetired ? undefined : seen
  }

  /**
   * Claims the ids of the tasks from `from` to `to`, or throws 409 and gives back all ids that `graph` has claimed so
   * far.
   */
  claim(graph: Graph, from: number, to: number): void {
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

  /** Gives the first `count` claimed ids back to their previous tasks. */
  unclaim(graph: Graph, count: number): void {
    const replaced = this.#replaced.get(graph)
    for (const task of graph.tasks.slice(0, count)) {
      const holder = replaced?.get(task.id)
      if (holder === undefined || holder.isDeleted || holder.graph.isRetired) this.#tasks.delete(task.id)
      else this.#tasks.set(task.id, holder)
    }
    this.#replaced.delete(graph)
  }

  /** Makes the claim of `graph` final. Returns the tasks that it replaces. */
  settle(graph: Graph): readonly Task[] {
    const replaced = this.#replaced.get(graph)
    if (replaced === undefined) return []
    this.#replaced.delete(graph)
    return [...replaced.values()]
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
