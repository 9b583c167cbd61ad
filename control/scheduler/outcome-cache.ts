/**
 * Outcomes of tasks under the keys that callers gave them (`cache` of a task).
 *
 * Only ids are kept here, so the cache keeps no graph in memory: whether the task still has a record, and its result, is
 * looked up in the store. Only outcomes of executed tasks are kept, so one that is taken over again and again gets old all
 * the same. The keys of tasks are on disk, so a start fills the cache from the records that there are. Tasks with other
 * secrets, or for somebody else in another service, have other outcomes.
 */
import { DEFAULT_CACHE_TTL_MS } from '../../shared/contract/cache.ts'
import { runSync } from '../../shared/process/steps.ts'
import { sortedNames } from '../../shared/request/secrets.ts'
import { findPlaceholders } from '../rules/placeholders.ts'
import { isSender, secretPlacesOf } from '../rules/secret-places.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'

/** Entries by default. Each takes some 300 bytes. */
export const DEFAULT_MAX_CACHED = 10_000

interface Entry {
  readonly graphId: string
  readonly taskId: string
  /** Milliseconds since 1970. */
  readonly finishedAt: number
  /** The id of the attempt in another service, if one carried it out. */
  readonly handleId: string | undefined
}

/** For whom a task is executed; undefined if that is not known before it starts. Such a task has no cached outcome. */
export type OnBehalfOf = (task: Task) => string | undefined

export class OutcomeCache {
  readonly #store: Pick<TaskStore, 'graph' | 'taskIn'>
  readonly #max: number
  readonly #onBehalfOf: OnBehalfOf
  /** The oldest entry first. */
  readonly #entries = new Map<string, Entry>()
  /** Names of the entries with a handle, by the id of that. */
  readonly #byHandle = new Map<string, string>()
  hits = 0
  misses = 0

  constructor(store: Pick<TaskStore, 'graph' | 'taskIn'>, max: number, onBehalfOf: OnBehalfOf = () => '') {
    this.#store = store
    this.#max = max
    this.#onBehalfOf = onBehalfOf
  }

  /** Number of keys. */
  get size(): number {
    return this.#entries.size
  }

  /** Keeps the outcome of a task that succeeded, if it has a key and was executed. The newest of a key counts. */
  note(task: Task): void {
    if (task.options.cache === undefined || task.status !== 'success') return
    if (task.rare.reused_from !== undefined || task.isDeleted) return
    const name = this.#nameOf(task, task.options.cache.key)
    if (name === undefined) return
    const finishedAt = task.finishedAt ?? 0
    const known = this.#entries.get(name)
    if (known !== undefined && known.finishedAt > finishedAt) return
    this.#delete(name)
    const handleId = task.rare.handle?.id
    this.#entries.set(name, { graphId: task.graph.id, taskId: task.id, finishedAt, handleId })
    if (handleId !== undefined) this.#byHandle.set(handleId, name)
    if (this.#entries.size <= this.#max) return
    const [oldest] = this.#entries.keys()
    this.#delete(oldest!)
  }

  /** Forgets the outcome of an attempt in another service, which no longer has the files of that. */
  forget(handleId: string): void {
    const name = this.#byHandle.get(handleId)
    if (name !== undefined) this.#delete(name)
  }

  /** Keeps the outcomes of an earlier run: some 10 ms for a million tasks. */
  fill(graphs: Iterable<Graph>): void {
    for (const graph of graphs) for (const task of graph.tasks) if (task.options.cache !== undefined) this.note(task)
  }

  /** The task whose outcome `task` takes over at `now` (milliseconds since 1970); undefined if it has to be executed. */
  find(task: Task, now: number): Task | undefined {
    const { cache } = task.options
    if (cache === undefined) return undefined
    const name = this.#nameOf(task, cache.key)
    if (name === undefined) return undefined
    const source = this.#find(name, cache.ttl_ms ?? DEFAULT_CACHE_TTL_MS, now)
    if (source === undefined) this.misses++
    else this.hits++
    return source
  }

  #find(name: string, ttlMs: number, now: number): Task | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined || entry.finishedAt + ttlMs <= now) return undefined
    const graph = this.#store.graph(entry.graphId)
    const source = graph && this.#store.taskIn(graph, entry.taskId)
    if (source?.status === 'success') return source
    this.#delete(name) // its record is gone
    return undefined
  }

  #delete(name: string): void {
    const handleId = this.#entries.get(name)?.handleId
    if (handleId !== undefined) this.#byHandle.delete(handleId)
    this.#entries.delete(name)
  }

  /** A result of one tool, for one tenant, or for one caller, never answers a task of another one. */
  #nameOf(task: Task, key: string): string | undefined {
    const { graph, type, toolName = '', secrets } = task
    const whom = this.#onBehalfOf(task)
    const sent = sentNames(task)
    const names = [graph.tenant ?? null, type, toolName, key, whom, sortedNames(secrets), sent]
    return whom === undefined ? undefined : JSON.stringify(names)
  }
}

/** The names of the secrets that a task sends, and whether they are masked. */
function sentNames(task: Task): readonly string[] {
  if (!isSender(task)) return []
  const { places } = runSync(findPlaceholders(task.input))
  return sortedNames(
    Object.fromEntries(
      secretPlacesOf(task, places).map(({ path, secret: { name, isMasked } }) => [
        JSON.stringify(path),
        { name, mask: isMasked },
      ]),
    ),
  )
}
