/**
 * Calls back for what happens to graphs that ask for it.
 *
 * What is due follows from the graph: its end, and the tasks that failed. A callback is written down once that is on disk, and
 * then delivered. If the service is killed in between, the next start finds the graph without its callback and makes up
 * for it. So each callback is delivered at least once, under the same id.
 */
import { isIP } from 'node:net'
import { join } from 'node:path'
import { CALLBACK_EVENTS, type CallbackEvent, type GraphCallback } from '../../shared/contract/callbacks.ts'
import { MAX_EVENT_ERROR_CHARACTERS } from '../../shared/contract/events.ts'
import { badRequest, messageOf, stackOf } from '../../shared/errors.ts'
import { GrowingPause } from '../../shared/growing-pause.ts'
import type { Log } from '../../shared/log.ts'
import { isYieldDue, runCooperatively, type Steps } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { graphTotals } from '../graph/graph-summary.ts'
import type { Change } from '../store/change.ts'
import type { TaskStore } from '../store/tasks.ts'
import { CallbackFile, type Delivery } from './callback-file.ts'
import { Deliveries } from './deliveries.ts'
import { type CallbackPolicy, hostOf, NotAllowed } from './post.ts'
import { isPublicAddress } from './public-address.ts'

export const CALLBACKS_FILE = 'callbacks.jsonl'

/** Milliseconds between two tries to have a change on disk. */
const DISK_PAUSES = { firstMs: 1_000, longestMs: 60_000 }

export interface CallbacksOptions {
  readonly store: TaskStore
  /** Resolves when every change so far is on disk. */
  readonly durable: () => Promise<void>
  readonly dataDir: string
  readonly policy: CallbackPolicy
  readonly secret: string | undefined
  readonly log: Log
}

export class Callbacks {
  readonly #options: CallbacksOptions
  readonly #file: CallbackFile
  readonly #deliveries: Deliveries
  /** Id to graph of all callbacks: of those that wait, are over, or are about to be written down. */
  readonly #known: Map<string, string>
  /** Those that are about to be written down. */
  readonly #preparing = new Set<string>()
  /** Those that an earlier run has left, until the start. */
  readonly #earlier: Delivery[]
  #unwatch = () => {}
  #isStopped = false

  /** Reads the callbacks of an earlier run. */
  constructor(options: CallbacksOptions) {
    this.#options = options
    const { dataDir, log, policy, secret } = options
    const onError = (error: unknown) => log.error('cannot note the state of a callback', { cause: messageOf(error) })
    this.#file = new CallbackFile(join(dataDir, CALLBACKS_FILE), onError)
    this.#deliveries = new Deliveries({ file: this.#file, policy, secret, log, onOver: () => this.#shrink() })
    const { waiting, over } = this.#file.read()
    this.#known = over
    this.#earlier = [...waiting.values()]
    for (const { id, graphId } of this.#earlier) this.#known.set(id, graphId)
  }

  get waitingCount(): number {
    return this.#deliveries.waitingCount
  }

  get counts(): Deliveries['counts'] {
    return this.#deliveries.counts
  }

  /** Throws 400 for an address that is none, or is certain to be refused when it is called. */
  check({ url: text }: GraphCallback): void {
    const url = URL.parse(text)
    if (url === null) throw badRequest('invalid JSON: callback.url: expected an http: or https: address')
    if (url.username !== '' || url.password !== '')
      throw badRequest('invalid JSON: callback.url: expected an address without user and password')
    const host = hostOf(url)
    const isRefused = host === 'localhost' || (isIP(host) !== 0 && !isPublicAddress(host))
    if (this.#options.policy === 'public' && isRefused)
      throw badRequest(`callback.url: ${new NotAllowed(host, [host]).message}`)
  }

  /** Delivers what an earlier run has left, and from now on what happens. */
  start(): void {
    this.#unwatch = this.#options.store.watch((change, seq) => this.#changed(change, seq))
    for (const delivery of this.#earlier.splice(0)) this.#deliveries.add(delivery)
    const looking = async () => runCooperatively(this.#makeUp([...this.#options.store.graphs]))
    looking().catch((error) =>
      this.#options.log.error('callbacks of an earlier run are lost', { cause: stackOf(error) }),
    )
  }

  /** What is not delivered is delivered by the next start. */
  stop(): void {
    this.#isStopped = true
    this.#unwatch()
    this.#deliveries.stop()
  }

  #changed(change: Change, seq: number): void {
    if (change.kind !== 'ended' && change.kind !== 'deleted') return
    const { task } = change
    const { callback } = task.graph.options
    if (callback === undefined) return
    if (change.kind === 'ended' && task.status === 'failed') this.#taskFailed(task, callback)
    if (task.graph.endedAt !== undefined) void this.#graphEnded(task.graph, callback, seq)
  }

  /** What graphs of an earlier run were not called back for. */
  *#makeUp(graphs: readonly Graph[]): Steps<void> {
    for (let i = 0; i < graphs.length; i++) {
      const graph = graphs[i]!
      const { callback } = graph.options
      if (callback !== undefined) {
        let seq = 0
        for (let t = 0; t < graph.tasks.length; t++) {
          const task = graph.tasks[t]!
          seq = Math.max(seq, task.seq)
          if (task.status === 'failed') this.#taskFailed(task, callback)
          if (isYieldDue(t)) yield
        }
        if (graph.endedAt !== undefined) void this.#graphEnded(graph, callback, seq)
      }
      if (isYieldDue(i)) yield
    }
  }

  #taskFailed(task: Task, callback: GraphCallback): void {
    if (task.isDeleted || !eventsOf(callback).includes('task_failed')) return
    const { graph, seq, id, attempt, failure, errorText = '' } = task
    void this.#callBack(graph, callback, 'task_failed', `-${task.position}`, () => ({
      ...{ seq, task_id: id, error: errorText.slice(0, MAX_EVENT_ERROR_CHARACTERS) },
      ...(failure?.code !== undefined && { code: failure.code }),
      attempt,
    }))
  }

  async #graphEnded(graph: Graph, callback: GraphCallback, seq: number): Promise<void> {
    if (!eventsOf(callback).includes('graph_ended')) return
    await this.#callBack(graph, callback, 'graph_ended', '', async () => {
      const { state, counts } = await runCooperatively(graphTotals(graph))
      return { state, counts, seq }
    })
  }

  /** Once for each event, as soon as it is on disk. */
  async #callBack(
    graph: Graph,
    { url }: GraphCallback,
    event: CallbackEvent,
    suffix: string,
    payload: () => object | Promise<object>,
  ): Promise<void> {
    const id = `${graph.id}-${event}${suffix}`
    if (this.#known.has(id)) return
    this.#known.set(id, graph.id)
    this.#preparing.add(id)
    const { name } = graph.options
    const members = { event, graph_id: graph.id, ...(name !== undefined && { name }), ...(await payload()) }
    await this.#onDisk()
    if (this.#isStopped) return
    const delivery = { id, graphId: graph.id, event, url, body: JSON.stringify(members), since: Date.now() }
    this.#preparing.delete(id)
    this.#file.add(delivery)
    this.#deliveries.add(delivery)
  }

  /** What happened is certain to outlive us. */
  async #onDisk(): Promise<void> {
    const pauses = new GrowingPause(DISK_PAUSES)
    while (!this.#isStopped) {
      try {
        await this.#options.durable()
        return
      } catch {
        await Bun.sleep(pauses.next()) // the journal has logged it
      }
    }
  }

  /** Forgets callbacks that are over, once their graph is gone. */
  #shrink(): void {
    if (!this.#file.mayShrink(this.#known.size)) return
    const waiting = this.#deliveries.waiting
    const isOver = (id: string) => !waiting.has(id) && !this.#preparing.has(id)
    for (const [id, graphId] of this.#known)
      if (isOver(id) && this.#options.store.graph(graphId) === undefined) this.#known.delete(id)
    const over = new Map([...this.#known].filter(([id]) => isOver(id)))
    void this.#file.rewrite({ waiting, over })
  }
}

const eventsOf = ({ events }: GraphCallback): readonly CallbackEvent[] => events ?? [CALLBACK_EVENTS[0]]
