/**
 * The other replicas: where graphs are, and requests to their owners.
 *
 * A request goes on to the owner once. The owner gets a header that forbids it to send the request on. A graph may have no
 * owner for some time: its replica is gone and not declared dead yet, or it is just being adopted. Callers get 503 then.
 */

import { ErrorResponse } from '../../../shared/contract/control.ts'
import { messageOf, ServiceError } from '../../../shared/contract/errors.ts'
import { type GiveUpRequest, MAX_GIVEN_UP_IDS } from '../../../shared/contract/replicas.ts'
import { faultText } from '../../../shared/http/connection-fault.ts'
import { fetchAsIs } from '../../../shared/http/fetch-as-is.ts'
import { callerLeftError } from '../../../shared/http/request-body.ts'
import { checkOf } from '../../json/schema-check.ts'
import type { TaskStore } from '../../task/task-store.ts'
import {
  type AskedReplica,
  type NamedGraph,
  type OtherReplica,
  type OtherReplicas,
  type ReplicaRequest,
  Unreadable,
  type UnreadableGraph,
} from '../keeper.ts'
import { noOwner } from '../no-owner.ts'
import type { FoundGraph } from './adoption-rows.ts'
import type { SharedRows } from './shared-rows.ts'
import type { Takeover } from './takeover.ts'
import { unavailable } from './unavailable.ts'

/** Forbids the receiver to send the request on. Its value is the number of the sender. */
export const HOP_HEADER = 'x-taskmill-hop'

/** In the answer to such a request: the number of the replica that answers. */
export const REPLICA_HEADER = 'x-taskmill-replica'

/** Milliseconds until an owner must have begun its answer, beyond those that the request itself waits. */
export const OWNER_ANSWER_MS = 2_000

export interface OthersOptions {
  readonly rows: Pick<SharedRows, 'adoptions' | 'replicas'>
  readonly store: Pick<TaskStore, 'get' | 'graph'>
  /** The token that callers of all replicas send. */
  readonly token: string | undefined
  readonly takeover: Pick<Takeover, 'adoptOne' | 'adopting' | 'isOwnNumber'>
}

export class Others implements OtherReplicas {
  readonly #options: OthersOptions
  readonly hopHeader = HOP_HEADER
  readonly replicaHeader = REPLICA_HEADER

  constructor(options: OthersOptions) {
    this.#options = options
  }

  get adopting(): readonly number[] {
    return this.#options.takeover.adopting
  }

  isHere(named: NamedGraph): boolean {
    const { store } = this.#options
    return ('graphId' in named ? store.graph(named.graphId) : store.get(named.taskId)) !== undefined
  }

  async ownerOf(named: NamedGraph, tenant?: string): Promise<AskedReplica | undefined> {
    const { rows, takeover } = this.#options
    if (this.isHere(named) || ('graphId' in named ? named.graphId : named.taskId).includes('\0')) return undefined
    try {
      const found = await rows.adoptions.find(named, tenant)
      if (found === undefined) return undefined
      const { owner, address } = found
      if (found.unreadable !== undefined) throw new Unreadable(found.graphId, found.unreadable)
      if (address === undefined) {
        if (!(await takeover.adoptOne(found))) throw takenOver()
        return this.isHere(named) ? undefined : await this.ownerOf(named, tenant) // it was set aside
      }
      // What this replica accepts or removes just now has rows. An adopted graph is perhaps not built yet.
      if (owner === rows.replicas.id && (takeover.isOwnNumber(found.ordinal) || this.isHere(named))) return undefined
      if (owner === rows.replicas.id || address === '') throw takenOver()
      return { id: owner, address }
    } catch (error) {
      if (error instanceof ServiceError) throw error
      throw unavailable(messageOf(error), error)
    }
  }

  /** As `Takeover.adoptOne`. Rejects with 503. */
  async #adopt(found: FoundGraph): Promise<boolean> {
    return await this.#options.takeover.adoptOne(found).catch((error) => {
      throw unavailable(messageOf(error), error)
    })
  }

  async unreadable(before: number, limit: number): Promise<readonly UnreadableGraph[]> {
    return await this.#options.rows.adoptions.unreadable(before, limit).catch((error) => {
      throw unavailable(messageOf(error), error)
    })
  }

  async removeUnreadable(graphId: string, tenant?: string): Promise<boolean> {
    if (graphId.includes('\0')) return false
    return await this.#options.rows.adoptions.removeUnreadable(graphId, tenant).catch((error) => {
      throw unavailable(messageOf(error), error)
    })
  }

  /**
   * `shown`: callers find the graph. `nowhere`: the database has no such graph. `unsettled`: its owner does not show it, as
   * it may remove it yet, or does not answer.
   */
  async whereabouts(named: NamedGraph): Promise<'shown' | 'nowhere' | 'unsettled'> {
    if (this.isHere(named)) return 'shown'
    const { rows } = this.#options
    const found = await rows.adoptions.find(named).catch((error) => {
      throw unavailable(messageOf(error), error)
    })
    if (found === undefined) return 'nowhere'
    const { owner, address, unreadable } = found
    if (unreadable !== undefined) return 'shown'
    if (address === undefined) return (await this.#adopt(found)) ? 'shown' : 'unsettled'
    if (owner === rows.replicas.id || address === '') return 'unsettled'
    const path =
      'graphId' in named
        ? `/graphs/${encodeURIComponent(named.graphId)}/tasks?limit=1`
        : `/tasks/${encodeURIComponent(named.taskId)}`
    const answer = await this.ask({ id: owner, address }, { method: 'GET', path, headers: new Headers() }).catch(
      () => undefined,
    )
    void answer?.body?.cancel().catch(() => {})
    return answer?.ok === true ? 'shown' : 'unsettled'
  }

  async all(): Promise<{ readonly live: readonly OtherReplica[]; readonly gone: readonly number[] }> {
    const { replicas, adoptions } = this.#options.rows
    try {
      // In this order: a replica that gives its graphs back in between is among those that live, or those that are gone.
      const all = await replicas.live()
      const gone = await adoptions.ownersGone()
      return { live: all, gone: [...new Set([...gone, ...this.adopting])] }
    } catch (error) {
      throw unavailable(messageOf(error), error)
    }
  }

  async ask(replica: AskedReplica, request: ReplicaRequest): Promise<Response> {
    const answer = await this.#answerOf(replica, request)
    if (answer instanceof Response) return answer
    throw noOwner(`replica ${replica.id} at ${replica.address}: ${answer.fault}`, answer.cause)
  }

  /** Why nobody reaches the replica at its address. Undefined if it answers there. */
  async faultOf(replica: AskedReplica): Promise<string | undefined> {
    const answer = await this.#answerOf(replica, { method: 'GET', path: '/health', headers: new Headers() })
    if (!(answer instanceof Response)) return answer.fault
    void answer.body?.cancel().catch(() => {})
    return undefined
  }

  async #answerOf(
    { id, address }: AskedReplica,
    { method, path, headers, body, signal, waitMs = 0 }: ReplicaRequest,
  ): Promise<Response | { readonly fault: string; readonly cause?: unknown }> {
    const { rows, token } = this.#options
    const sent = new Headers(headers)
    sent.set(HOP_HEADER, String(rows.replicas.id))
    if (token !== undefined) sent.set('authorization', `Bearer ${token}`)
    const silence = new AbortController()
    const giveUp = (why: string) => silence.abort(new Error(why))
    const limitMs = waitMs + OWNER_ANSWER_MS
    let isSilent = true
    const late = Number.isFinite(limitMs)
      ? setTimeout(() => giveUp(`no answer within ${limitMs / 1_000} s`), limitMs)
      : undefined
    const look = setInterval(async () => {
      if (!(await this.#isAlive(id)) && isSilent) giveUp('its lease is over')
    }, OWNER_ANSWER_MS)
    const either = AbortSignal.any(signal === undefined ? [silence.signal] : [silence.signal, signal])
    let answer: Response
    try {
      const request = { method, headers: sent, signal: either, ...(body && { body }) }
      answer = await fetchAsIs(address + path, { ...request, proxy: false })
    } catch (cause) {
      if (signal?.aborted) throw callerLeftError()
      return { fault: silence.signal.aborted ? messageOf(silence.signal.reason) : faultText(cause), cause }
    } finally {
      isSilent = false // whoever has begun to answer ends with the connection
      clearTimeout(late)
      clearInterval(look)
    }
    const fault = strangerIn(answer, id)
    if (fault === undefined) return answer
    void answer.body?.cancel().catch(() => {})
    return { fault }
  }

  /** Unless the database says otherwise, a replica whose lease is not over is alive. */
  async #isAlive(id: number): Promise<boolean> {
    const live = await this.#options.rows.replicas.live().catch(() => undefined)
    return live === undefined || live.some((replica) => replica.id === id && replica.leaseMs > 0)
  }

  /**
   * Has the owners of these ids give them up, if their tasks have ended. Throws 409 if one has not ended, and 503 while a
   * graph has no owner, or this replica has an id that it does not show.
   */
  async free(taskIds: readonly string[]): Promise<void> {
    const { rows } = this.#options
    const holders = await rows.adoptions.holders(taskIds).catch((error) => {
      throw unavailable(messageOf(error), error)
    })
    if (holders.length === 0) {
      await rows.adoptions.freeStray(taskIds).catch((error) => {
        throw unavailable(messageOf(error), error)
      })
    }
    const byOwner = Map.groupBy(holders, ({ owner }) => owner)
    for (const [owner, held] of byOwner) {
      const { address, taskId, graphId, unreadable } = held[0]!
      if (unreadable !== undefined) throw new Unreadable(graphId, unreadable, `the graph ${graphId} of task ${taskId}`)
      // Its row is just being removed, or its graph being built: callers would not have come so far otherwise.
      if (owner === rows.replicas.id) throw noOwner(`task ${taskId} is being removed, or taken over, here`)
      if (address === undefined) {
        for (const found of new Map(held.map((each) => [each.ordinal, each])).values()) await this.#adopt(found)
        throw noOwner(`the graph of task ${taskId} is being taken over`)
      }
      const ids = held.map((each) => each.taskId)
      for (let from = 0; from < ids.length; from += MAX_GIVEN_UP_IDS)
        await this.#freeAt({ id: owner, address }, ids.slice(from, from + MAX_GIVEN_UP_IDS))
    }
  }

  async #freeAt(owner: AskedReplica, ids: readonly string[]): Promise<void> {
    const request: GiveUpRequest = { task_ids: [...ids] }
    const body = new TextEncoder().encode(JSON.stringify(request))
    const headers = new Headers({ 'content-type': 'application/json' })
    const answer = await this.ask(owner, { method: 'POST', path: '/replicas/ids', headers, body })
    if (answer.status === 204) return
    const refusal: unknown = await answer.json().catch(() => undefined)
    const text = checkOf(ErrorResponse).accepts(refusal) ? (refusal as ErrorResponse).error : 'no error is given'
    if (answer.status === 409) throw new ServiceError(409, text)
    throw noOwner(`replica ${owner.id} at ${owner.address} answers ${answer.status}: ${text}`)
  }
}

const takenOver = () => noOwner('the graph is being taken over by another replica')

/** The service that answers instead of replica `id`: the address may be wrong, or belong to a successor. */
function strangerIn({ headers, status }: Response, id: number): string | undefined {
  const answering = headers.get(REPLICA_HEADER)
  if (answering === String(id)) return undefined
  if (answering !== null) return `replica ${answering} answers at this address (see --advertise)`
  return `no replica answers ${status} at this address, or one with another token (see --advertise)`
}
