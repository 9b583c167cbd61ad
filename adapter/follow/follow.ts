/**
 * Follows a graph until it has ended: one look at it, then its events. A lost connection is resumed after the last event,
 * also across a restart of the service. A service without events is asked again and again; it holds each request until
 * the graph has ended or `wait_ms` are over.
 */
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { CallFailed, type ServiceClient } from '../../shared/http-client.ts'
import type { FollowedGraph } from './followed-graph.ts'
import { graphEvents, type Since } from './graph-events.ts'
import { Outage } from './outage.ts'

/** The number of the last event that an answer includes. */
const EVENT_SEQ_HEADER = 'x-event-seq'

/** Answers of a service that has no such route. */
const NO_ROUTE = new Set([404, 405])

/** Milliseconds for which a service without events holds a look. Shorter looks show changes sooner. */
const LOOK_HOLD_MS = 500

/** The graph was deleted, or has been kept for long enough. */
class GraphRemoved extends Error {}

export class Follower {
  readonly #client: ServiceClient
  readonly #graph: FollowedGraph
  readonly #signal: AbortSignal
  readonly #outage: Outage
  #since: Since | undefined
  #hasEvents = true

  constructor(client: ServiceClient, graph: FollowedGraph, signal: AbortSignal) {
    this.#client = client
    this.#graph = graph
    this.#signal = signal
    this.#outage = new Outage(signal)
  }

  /** What is wrong with the connection; empty if nothing is. */
  get notice(): string {
    return this.#outage.notice
  }

  /** Returns once the graph has ended. Throws what `signal` is aborted with, or `CallFailed` if there is no such graph. */
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
    // Of a graph that is too large for one answer, the past has the other tasks.
    this.#since = { after: (body as GraphDetails).truncated ? 0 : Number(headers.get(EVENT_SEQ_HEADER) ?? 0) }
    this.#outage.over()
  }

  async #readEvents(since: Since): Promise<void> {
    for await (const { kind, data, id } of graphEvents(this.#client, this.#graph.graphId, since, this.#signal)) {
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
        this.#hasEvents = false // the next look tells whether it is the graph that is unknown
        return
      }
      if (error.statusCode > 0) this.#since = undefined // it refuses the stream now, but may answer a look
    }
    await this.#outage.lost(error)
  }
}
