/**
 * Retention: removes graphs that ended long ago, and the oldest ended graphs when there are too many tasks or bytes.
 *
 * A graph is removed as a whole. The retention time begins with the end of its last task. A live graph is never
 * removed. Ended graphs are in the order of their ends, so a sweep looks only at the first ones.
 *
 * Services that share a database share `maxStoredTasks`, too: a takeover then changes nothing. The oldest graphs of all go,
 * and each service removes its own among them, soon: until then, more tasks are stored. Bytes are of each service alone.
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { Change } from './change.ts'
import type { Graph } from './graph.ts'
import type { TaskNumbers } from './task-count.ts'
import type { TaskStore } from './task-store.ts'

/** Maximum milliseconds between two sweeps. */
const SLOWEST_SWEEP_MS = 60_000

/** Sweeps per retention time. A graph is removed at most one sweep interval late. */
const SWEEPS_PER_RETENTION = 20

/** Shortest milliseconds between two looks for the oldest graphs of all. */
const LOOK_MS = 100

/** The last graph that has to go: with it, all that ended before, and those with lower numbers that ended with it. */
export interface LastToGo {
  /** Milliseconds since 1970. */
  readonly endedAt: number
  readonly ordinal: number
}

/** The tasks of all services that share the limit. */
export interface SharedRoom {
  /** The numbers of the other services. */
  readonly others: TaskNumbers
  /** Called when the numbers may have changed. */
  onChange: () => void
  /**
   * The last graph of any service that must go, so that `count` more tasks fit into `max`. Undefined if none has to, or
   * can. Rejects if that is unknown now.
   */
  lastToGo(count: number, max: number): Promise<LastToGo | undefined>
}

export interface RetentionOptions {
  readonly store: TaskStore
  /** Milliseconds that a graph is kept after its end. 0 keeps it for ever. */
  readonly retentionMs: number
  readonly maxStoredTasks: number
  /** Tasks of one graph. Absent: as many as are stored. */
  readonly maxGraphTasks?: number
  /** Bytes of results and resolved inputs. 0 or absent: no limit. */
  readonly maxStoredBytes?: number
  /** Absent: no other service shares the limit. */
  readonly room?: SharedRoom | undefined
  readonly log: Log
}

const NO_TASKS: TaskNumbers = { all: 0, ended: 0 }

export class Retention {
  readonly #options: RetentionOptions
  /** Ended graphs in the order of their ends, if `#isSorted`. */
  #ended = new Set<Graph>()
  /** The end of the last graph in `#ended`. */
  #lastEnd = 0
  #isSorted = true
  #isLooking = false
  /** Graphs will be removed because of their bytes. */
  #isFreeing = false
  readonly #timer: Timer | undefined

  constructor(options: RetentionOptions) {
    this.#options = options
    const { store, retentionMs, room } = options
    const ended = [...store.graphs].filter((graph) => graph.endedAt !== undefined)
    for (const graph of ended.sort((a, b) => a.endedAt! - b.endedAt!)) this.#add(graph)
    store.watch((change) => this.#note(change))
    if (room !== undefined) room.onChange = () => this.#removeOldestOfAll()
    this.#freeBytes()
    if (retentionMs === 0) return
    this.sweep()
    const intervalMs = Math.min(Math.max(1, retentionMs / SWEEPS_PER_RETENTION), SLOWEST_SWEEP_MS)
    this.#timer = setInterval(() => this.sweep(), intervalMs)
  }

  #note(change: Change): void {
    const graph = 'task' in change ? change.task.graph : change.graph
    if (change.kind === 'graph-retired' || change.kind === 'tasks-retried' || graph.visible === 0)
      this.#ended.delete(graph)
    else if (graph.endedAt !== undefined) this.#add(graph)
    if (this.#hasTooManyBytes && !this.#isFreeing) {
      this.#isFreeing = true
      queueMicrotask(() => this.#freeBytes()) // other watchers are told of this change first
    }
  }

  get #hasTooManyBytes(): boolean {
    const { store, maxStoredBytes = 0 } = this.#options
    return maxStoredBytes > 0 && store.storedBytes > maxStoredBytes && this.#ended.size > 1
  }

  /** Removes the oldest ended graphs. The last one stays, whatever its size: somebody may wait for its results. */
  #freeBytes(): void {
    this.#isFreeing = false
    for (const graph of this.#oldest) {
      if (!this.#hasTooManyBytes) return
      this.#retire(graph, Date.now())
    }
  }

  #add(graph: Graph): void {
    if (this.#ended.has(graph)) return
    const isLast = graph.endedAt! >= this.#lastEnd
    this.#ended.add(graph)
    if (isLast) this.#lastEnd = graph.endedAt!
    else this.#isSorted = false // it ended in another service, and was adopted
  }

  /** Ended graphs, the first one first. */
  get #oldest(): Iterable<Graph> {
    if (!this.#isSorted) this.#ended = new Set([...this.#ended].sort((a, b) => a.endedAt! - b.endedAt!))
    this.#isSorted = true
    return this.#ended
  }

  /** Retires graphs that ended more than the retention time ago. */
  sweep(now = Date.now()): void {
    const { retentionMs } = this.#options
    for (const graph of this.#oldest) {
      if (graph.endedAt! + retentionMs > now) return
      this.#retire(graph, now)
    }
  }

  /** Throws 413 if a graph of `count` tasks exceeds a limit on its own. */
  checkSize(count: number): void {
    const { maxStoredTasks, maxGraphTasks = maxStoredTasks } = this.#options
    if (count > maxGraphTasks && maxGraphTasks < maxStoredTasks)
      throw new ServiceError(
        413,
        `the graph has ${count} tasks, but at most ${maxGraphTasks} are allowed (--max-graph-tasks): split it, or raise the limit`,
      )
    if (count <= maxStoredTasks) return
    const text = `the graph has ${count} tasks, but at most ${maxStoredTasks} are kept`
    throw new ServiceError(413, `${text} (--max-stored-tasks): split it, or raise the limit`)
  }

  /** Removes the oldest ended graphs until `count` more tasks fit. Throws 413 as `checkSize`, 503 as `ensureRoom`. */
  makeRoom(count: number, now = Date.now()): void {
    this.checkSize(count)
    if (this.#fits(count)) return
    this.ensureRoom(count)
    if (this.#others.ended > 0) {
      this.#removeOldestOfAll(count)
      return
    }
    for (const graph of this.#oldest) {
      if (this.#fits(count)) return
      this.#retire(graph, now)
    }
  }

  get #others(): TaskNumbers {
    return this.#options.room?.others ?? NO_TASKS
  }

  #fits(count: number): boolean {
    const { store, maxStoredTasks } = this.#options
    return store.taskCount + this.#others.all + count <= maxStoredTasks
  }

  /** Removes what is among the oldest graphs of all, if those leave no room for `count` more tasks. */
  #removeOldestOfAll(count = 0): void {
    if (this.#isLooking || this.#fits(count)) return
    this.#isLooking = true
    void this.#removeUpToLast(count)
      .catch(() => {}) // the next turn looks again
      .finally(() =>
        setTimeout(() => {
          this.#isLooking = false
        }, LOOK_MS).unref(),
      )
  }

  async #removeUpToLast(count: number): Promise<void> {
    const { room, maxStoredTasks } = this.#options
    const last = await room?.lastToGo(count, maxStoredTasks)
    if (last === undefined) return
    for (const graph of this.#oldest) {
      if (graph.endedAt! > last.endedAt) return
      if (graph.endedAt! < last.endedAt || graph.ordinal <= last.ordinal) this.#retire(graph, Date.now())
    }
  }

  /** Throws 503 if the tasks of live graphs leave no room for `count` more. Removes nothing. */
  ensureRoom(count: number): void {
    const { store, maxStoredTasks } = this.#options
    const { all, ended } = this.#others
    const held = store.taskCount - store.endedTaskCount + all - ended
    if (held + count <= maxStoredTasks) return
    const more = `${count} more ${count === 1 ? 'task' : 'tasks'}`
    const text = `no room for ${more}: graphs that have not ended hold ${held} of at most ${maxStoredTasks}`
    throw new ServiceError(503, `${text} (--max-stored-tasks)`)
  }

  /** Makes room for `count` children of a task of a live graph. Returns why there is none. */
  roomFor(count: number): string | undefined {
    const { maxStoredTasks } = this.#options
    if (count > maxStoredTasks) {
      return `no room for ${count} more tasks: at most ${maxStoredTasks} are kept (--max-stored-tasks)`
    }
    try {
      this.makeRoom(count)
      return undefined
    } catch (error) {
      if (error instanceof ServiceError) return error.message
      throw error
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #retire(graph: Graph, at: number): void {
    const { store, log } = this.#options
    log.debug('graph retired', { trace_id: graph.traceId, graph_id: graph.id, tasks: graph.visible })
    store.apply({ kind: 'graph-retired', graph, at })
  }
}
