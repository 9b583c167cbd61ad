/**
 * Follows a graph until it has ended: reads it once, then its events. After a lost connection or a restart of the
 * service it resumes after the last event. A service without events is polled with `wait_ms`.
 */
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import { eventStream } from '../../shared/streams/event-stream.ts'
import type { FollowedGraph } from './followed-graph.ts'
import { Outage } from './outage.ts'

/** The number of the last event that an answer includes. */
const EVENT_SEQ_HEADER = 'x-event-seq'

/** Answers of a service that has no such route. */
const NO_ROUTE = new Set([404, 405])

/** `wait_ms` of each poll of a service without events. A shorter one shows changes sooner. */
const LOOK_HOLD_MS = 500

/** Where the events begin: after the event with this id, or after the event with this number. */
type Since = { readonly lastEventId: string } | { readonly after: number }

/** The graph was deleted by a caller or by retention. */
export class GraphRemoved extends Error {}

export class Follower {
  readonly #client: ServiceClient
  readonly #graph: FollowedGraph
  readonly #signal: AbortSignal
  readonly #outage: Outage
  #since: Since | undefined
  #hasEvents = true

  /** `onOutage` gets a sentence once per lost connection. */
  constructor(
    client: ServiceClient,
    graph: FollowedGraph,
    signal: AbortSignal,
    onOutage: (notice: string) => void = () => {},
  ) {
    this.#client = client
    this.#graph = graph
    this.#signal = signal
    this.#outage = new Outage(signal, onOutage)
  }

  /** The fault of the connection; empty if there is none. */
  get notice(): string {
    return this.#outage.notice
  }

  /** Returns once the graph has ended. Throws the reason of `signal`, or `CallFailed` if there is no such graph. */
  async follow(): Promise<void> {
    while (!this.#graph.hasEnded) {
      try {
        if (this.#since === undefined || !this.#hasEvents) await this.#look()
        else await this.#readEvents(this.#since)
      } catch (error) {
        this.#signal.throwIfAborted()
        await this.#lost(error)
      }
    }
  }

  async #look(): Promise<void> {
    const hold = this.#hasEvents ? '' : `?wait_ms=${LOOK_HOLD_MS}`
    const path = `/graphs/${encodeURIComponent(this.#graph.graphId)}${hold}`
    const { body, headers } = await this.#client.answer({ method: 'GET', path, signal: this.#signal })
    this.#graph.look(body as GraphDetails)
    // The answer leaves out tasks of a very large graph. All of its events have them.
    this.#since = { after: (body as GraphDetails).truncated ? 0 : Number(headers.get(EVENT_SEQ_HEADER) ?? 0) }
    this.#outage.over()
  }

  async #readEvents(since: Since): Promise<void> {
    const after = 'after' in since ? `&after=${since.after}` : ''
    const path = `/graphs/${encodeURIComponent(this.#graph.graphId)}/events?until=ended${after}`
    const lastEventId = 'lastEventId' in since ? since.lastEventId : undefined
    for await (const { kind, data, id } of eventStream(this.#client, { path, lastEventId, signal: this.#signal })) {
      this.#outage.over()
      if (id !== undefined) this.#since = { lastEventId: id }
      this.#graph.apply(kind, data)
      if (kind === 'graph_removed') throw new GraphRemoved(`graph ${this.#graph.graphId} was removed`)
      if (this.#graph.hasEnded) return
    }
    this.#signal.throwIfAborted()
    throw new Error('the service closed the connection')
  }

  /** Waits before the next try. Throws `error` if another try cannot help. */
  async #lost(error: unknown): Promise<void> {
    if (error instanceof GraphRemoved) throw error
    if (error instanceof CallFailed) {
      if (this.#since !== undefined && this.#hasEvents && NO_ROUTE.has(error.statusCode)) {
        this.#hasEvents = false // an unknown graph gets 404, too; the next read tells which
        return
      }
      if (error.statusCode > 0) this.#since = undefined // read the graph again before the next stream
    }
    await this.#outage.lost(error)
  }
}
