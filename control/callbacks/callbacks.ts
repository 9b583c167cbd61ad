/**
 * Sends callbacks for graphs and schedules that ask for them.
 *
 * The end of a graph, each failed task and each approval that waits for its answer cause a callback. The callback is
 * noted in the log, or in the database, once the change is kept, and then delivered. If the service is killed in between, the
 * next start finds the graph without its callback and creates the callback again. So each callback is delivered at least once, under the same id.
 */

import { readFileSync } from 'node:fs'
import {
  CALLBACK_EVENTS,
  type CallbackEvent,
  type GraphCallback,
  type ScheduleCallback,
} from '../../shared/contract/callbacks.ts'
import { stackOf, systemCodeOf, UsageError } from '../../shared/contract/errors.ts'
import { MAX_EVENT_ERROR_CHARACTERS } from '../../shared/contract/events.ts'
import { secretTargetOf } from '../../shared/egress/secret-host.ts'
import { ofTokenTenant } from '../../shared/files/secret-rules.ts'
import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import type { Log } from '../../shared/logs/log.ts'
import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { HistoryGone } from '../log/event-reader.ts'
import type { EventRow } from '../log/event-rows.ts'
import type { Keeper } from '../log/keeper.ts'
import type { Delivery, KeptCallbacks, StoredCallbacks } from '../log/kept-callbacks.ts'
import { type AddressGuard, AddressRefused } from '../outbound/address-guard.ts'
import { secretIn } from '../rules/callback-headers.ts'
import type { Report } from '../rules/report.ts'
import { isApproval, isAskedApproval } from '../task/approval.ts'
import type { Change } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import { graphTotals } from '../task/graph-summary.ts'
import { retriesOf } from '../task/retry.ts'
import type { TaskStore } from '../task/task-store.ts'
import { onCaller } from '../task/waiting.ts'
import { Deliveries } from './deliveries.ts'

/** Ids of callbacks are looked through for those of removed graphs when there are this many more than twice those that stayed. */
const MAX_SPARE = 10_000

/** Pauses between attempts to sync the journal. */
const DISK_PAUSES = { firstMs: 1_000, longestMs: 60_000 }

export interface CallbacksOptions {
  readonly store: TaskStore
  /** A start looks up in past events the numbers of those that missing callbacks are about. */
  readonly keeper: Pick<Keeper, 'callbacks' | 'history' | 'kept'>
  /** Decides which addresses may be called. */
  readonly guard: AddressGuard
  readonly secret: string | undefined
  /** Has the values for headers. */
  readonly secrets: SecretsDirectory
  readonly log: Log
}

export class Callbacks {
  readonly #options: CallbacksOptions
  readonly #kept: KeptCallbacks
  readonly #deliveries: Deliveries
  /** Ids of all callbacks, with the ids of their graphs: preparing, waiting, and over. */
  readonly #known: Map<string, string>
  /** Number of ids from which on some are forgotten. */
  #forgetAt = MAX_SPARE
  /** Ids of callbacks that are not kept yet. */
  readonly #preparing = new Set<string>()
  /** Undelivered callbacks of an earlier run. Empty after the start. */
  readonly #earlier: Delivery[]
  #unwatch = () => {}
  #isStopped = false

  /** Reads the callbacks of an earlier run. */
  constructor(options: CallbacksOptions) {
    this.#options = options
    const { guard, keeper, log, secret, secrets } = options
    this.#kept = keeper.callbacks
    this.#deliveries = new Deliveries({ kept: this.#kept, guard, secret, secrets, log, onOver: () => this.#shrink() })
    const { waiting, over } = this.#kept.found
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

  /**
   * Reports an address that is none, or is certain to be refused when it is called, and secrets that it cannot get. `field` names
   * the callback, `tenant` whose it is.
   */
  check(
    { url: text, headers }: ScheduleCallback,
    report: Report,
    { field = 'callback', tenant }: { readonly field?: string; readonly tenant?: string | undefined } = {},
  ): void {
    const url = URL.parse(text)
    if (url === null) {
      report(`invalid JSON: ${field}.url: expected an http: or https: address`)
      return
    }
    if (url.username !== '' || url.password !== '')
      report(`invalid JSON: ${field}.url: expected an address without user and password`)
    try {
      this.#options.guard.for(tenant).check(url)
    } catch (error) {
      if (!(error instanceof AddressRefused)) throw error
      report(`${field}.url: ${error.message}`)
    }
    for (const [name, value] of Object.entries(headers ?? {})) {
      const fault = this.#secretFault(value, url, tenant)
      if (fault !== undefined) report(`${field}.headers.${name}: ${fault}`)
    }
  }

  #secretFault(value: unknown, url: URL, tenant: string | undefined): string | undefined {
    const secret = secretIn(value)
    if (typeof secret !== 'object') return undefined
    const { secrets } = this.#options
    const target = secretTargetOf(url)
    const asker = { type: 'callback', ...ofTokenTenant(tenant), to: target === undefined ? [] : [target] }
    return secrets.whyNot(secret.name, secrets.names(), asker)
  }

  /** Delivers the callbacks of an earlier run, and from now on those of new changes. */
  start(): void {
    this.#unwatch = this.#options.store.watch((change, seq) => this.#changed(change, seq))
    for (const delivery of this.#earlier.splice(0)) this.#deliveries.add(delivery)
    this.#makeUp([...this.#options.store.graphs]).catch((error) =>
      this.#options.log.error('callbacks of an earlier run are lost', { cause: stackOf(error) }),
    )
  }

  /** Delivers the callbacks of graphs that another replica had, and creates those that it did not keep. */
  async adopt(graphs: readonly Graph[], { waiting, over }: StoredCallbacks): Promise<void> {
    for (const [id, graphId] of over) this.#known.set(id, graphId)
    for (const delivery of waiting.values()) {
      if (this.#known.has(delivery.id)) continue
      this.#known.set(delivery.id, delivery.graphId)
      this.#deliveries.add(delivery)
    }
    await this.#makeUp(graphs)
  }

  /** Delivers callbacks of a schedule, each id once. Resolves when they are kept. Rejects with 503. */
  async tell(deliveries: readonly Delivery[]): Promise<void> {
    await this.#options.keeper.kept('promise') // what they tell comes first
    for (const delivery of deliveries) {
      const { id, graphId } = delivery
      if (this.#known.has(id)) continue
      this.#known.set(id, graphId)
      this.#kept.keep({ id, graphId, delivery })
      this.#deliveries.add(delivery)
    }
    await this.#options.keeper.kept('promise')
  }

  /** The next start delivers the remaining callbacks. */
  stop(): void {
    this.#isStopped = true
    this.#unwatch()
    this.#deliveries.stop()
  }

  #changed(change: Change, seq: number): void {
    if (change.kind === 'graph-patched') this.#rename(change)
    else if (change.kind === 'graph-ended') {
      const { callback } = change.graph.options
      if (callback !== undefined) void this.#graphEnded(change.graph, callback, seq)
    } else if (change.kind === 'ended' && change.task.status === 'failed') {
      const { callback } = change.task.graph.options
      if (callback !== undefined) this.#taskFailed(change.task, callback)
    } else if (change.kind === 'asked' && isApproval(change.task)) {
      const { callback } = change.task.graph.options
      if (callback !== undefined) this.#approvalAsked(change.task, callback)
    }
  }

  /** Callbacks of tasks are known by the positions of these until the first patch of the graph, then by their ids. */
  #rename({ graph, before, patched }: Extract<Change, { kind: 'graph-patched' }>): void {
    if (graph.options.callback === undefined || patched.revision > 1) return
    for (const [position, task] of before.entries()) {
      for (const event of ['task_failed', 'approval_asked'] as const) {
        const again = againSuffix(task.rare.retried?.count)
        if (!this.#known.has(`${idOf(graph, event)}-${position}${again}`)) continue
        const id = idOf(graph, event) + suffixOf(task)
        this.#known.set(id, graph.id)
        this.#kept.keep({ id, graphId: graph.id, delivery: undefined })
      }
    }
  }

  /** Creates the callbacks that a killed run did not keep. */
  async #makeUp(graphs: readonly Graph[]): Promise<void> {
    const ended = await runCooperatively(this.#makeUpForTasks(graphs))
    if (ended.length === 0) return
    await this.#onDisk() // a start may just have given the ends their numbers
    const numbers = await endNumbers(this.#options.keeper.history, new Set(ended.map(({ id }) => id)))
    for (const graph of ended) {
      const lastChange = graph.tasks.reduce((highest, { seq }) => Math.max(highest, seq), 0)
      void this.#graphEnded(graph, graph.options.callback!, numbers.get(graph.id) ?? lastChange)
    }
  }

  /** As `#makeUp`, for failed tasks and approvals. Returns the ended graphs without a callback. */
  *#makeUpForTasks(graphs: readonly Graph[]): Steps<Graph[]> {
    const ended: Graph[] = []
    for (let i = 0; i < graphs.length; i++) {
      const graph = graphs[i]!
      const { callback } = graph.options
      if (callback !== undefined) {
        for (let t = 0; t < graph.tasks.length; t++) {
          if (graph.tasks[t]!.status === 'failed') this.#taskFailed(graph.tasks[t]!, callback)
          else if (isAskedApproval(graph.tasks[t]!)) this.#approvalAsked(graph.tasks[t]!, callback)
          if (isYieldDue(t)) yield
        }
        if (graph.endedAt !== undefined && !this.#known.has(endId(graph))) ended.push(graph)
      }
      if (isYieldDue(i)) yield
    }
    return ended
  }

  #taskFailed(task: Task, callback: GraphCallback): void {
    if (task.isDeleted || task.childOf !== undefined || !eventsOf(callback).includes('task_failed')) return
    const { graph, seq, id, attempt, rare } = task
    const { failure, error: errorText = '' } = rare
    void this.#callBack(graph, callback, 'task_failed', suffixOf(task), () => ({
      ...{ seq, task_id: id, error: errorText.slice(0, MAX_EVENT_ERROR_CHARACTERS) },
      ...(failure?.code !== undefined && { code: failure.code }),
      attempt,
    }))
  }

  #approvalAsked(task: Task, callback: GraphCallback): void {
    if (task.isDeleted || !eventsOf(callback).includes('approval_asked')) return
    const { seq, id: task_id } = task
    const { detail: message, until } = onCaller(task) ?? {}
    void this.#callBack(task.graph, callback, 'approval_asked', suffixOf(task), () => ({
      ...{ seq, task_id },
      ...(message !== undefined && { message }),
      ...(until !== undefined && { until }),
    }))
  }

  async #graphEnded(graph: Graph, callback: GraphCallback, seq: number): Promise<void> {
    if (!eventsOf(callback).includes('graph_ended')) return
    await this.#callBack(graph, callback, 'graph_ended', againSuffix(retriesOf(graph)), async () => {
      const { state, counts } = await runCooperatively(graphTotals(graph))
      return { state, counts, seq }
    })
  }

  /** Creates a callback unless it exists, once its change is on disk. */
  async #callBack(
    graph: Graph,
    { url, headers }: GraphCallback,
    event: CallbackEvent,
    suffix: string,
    payload: () => object | Promise<object>,
  ): Promise<void> {
    const id = idOf(graph, event) + suffix
    if (this.#known.has(id)) return
    this.#known.set(id, graph.id)
    this.#preparing.add(id)
    const { name } = graph.options
    const members = { event, graph_id: graph.id, ...(name !== undefined && { name }), ...(await payload()) }
    await this.#onDisk()
    if (this.#isStopped) return
    const { tenant } = graph
    const sent = { url, body: JSON.stringify(members), ...(headers != null && { headers }) }
    const delivery = {
      id,
      graphId: graph.id,
      event,
      ...sent,
      ...(tenant !== undefined && { tenant }),
      since: Date.now(),
    }
    this.#preparing.delete(id)
    this.#kept.keep({ id, graphId: graph.id, delivery })
    this.#deliveries.add(delivery)
  }

  /** Resolves when all changes so far are on disk. */
  async #onDisk(): Promise<void> {
    const pauses = new GrowingPause(DISK_PAUSES)
    while (!this.#isStopped) {
      try {
        await this.#options.keeper.kept('promise')
        return
      } catch {
        await Bun.sleep(pauses.next()) // the journal has logged it
      }
    }
  }

  /** Forgets delivered and given-up callbacks of removed graphs. */
  #shrink(): void {
    if (this.#known.size < this.#forgetAt) return
    for (const [id, graphId] of this.#known) {
      const isOver = !this.#deliveries.isWaiting(id) && !this.#preparing.has(id)
      if (isOver && this.#options.store.graph(graphId) === undefined) this.#known.delete(id)
    }
    this.#forgetAt = 2 * this.#known.size + MAX_SPARE
  }
}

/** Id of a callback: the same in each try and after a restart. Callbacks of tasks add a suffix. */
const idOf = ({ id }: Graph, event: CallbackEvent): string => `${id}-${event}`

/** After a retry, the same change is another one. */
const againSuffix = (retries = 0): string => (retries === 0 ? '' : `-again-${retries}`)

const suffixOf = (task: Task): string => `-${nameOf(task)}${againSuffix(task.rare.retried?.count)}`

/** A patch changes the positions of tasks. Its revision tells a task from an earlier one with the same id. */
const nameOf = ({ position, id, graph, rare }: Task): string => {
  if (graph.patched === undefined) return String(position)
  return rare.added === undefined ? id : `${id}-of-${rare.added}`
}

const endId = (graph: Graph): string => idOf(graph, 'graph_ended') + againSuffix(retriesOf(graph))

/** The numbers of the `graph_ended` events that the history still has, by graph. */
async function endNumbers(
  history: Keeper['history'],
  graphIds: ReadonlySet<string>,
): Promise<ReadonlyMap<string, number>> {
  const numbers = new Map<string, number>()
  const isWanted = ([kind, graphId]: EventRow) => kind === 'ended' && graphIds.has(graphId)
  try {
    for await (const events of history.read({ after: history.oldest, upTo: history.last, isWanted }))
      for (const event of events) if (event.event === 'graph_ended') numbers.set(event.graph_id, event.seq)
  } catch (error) {
    if (!(error instanceof HistoryGone)) throw error
  }
  return numbers
}

const eventsOf = ({ events }: GraphCallback): readonly CallbackEvent[] => events ?? [CALLBACK_EVENTS[0]]

/** Reads the secret and trims white space. Undefined without a file. Throws `UsageError`. */
export function readSecret(path: string): string | undefined {
  if (path === '') return undefined
  let secret: string
  try {
    secret = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new UsageError(
      `cannot read the secret file ${path}: ${systemCodeOf(error) ?? error} (give another with --callback-secret-file)`,
    )
  }
  if (secret === '') throw new UsageError(`the secret file ${path} is empty (see --callback-secret-file)`)
  return secret
}
