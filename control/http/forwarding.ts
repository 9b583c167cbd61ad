/**
 * Sends requests on to the replica that has the graph, and hands its answers back as they come.
 *
 * A graph is looked up in the database only if it is not here. A request goes on once: one that came from another replica
 * is answered here, or with 503. Without a database, everything that there is is here.
 */

import type { AnyElysia } from 'elysia'
import { callerOf, endingWithToken, passOnCaller } from '../../shared/http/callers.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { pathOf, urlOf } from '../../shared/http/request-url.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import { IDLE_TIMEOUT_SECONDS, WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { TRACE_HEADER } from '../../shared/logs/trace.ts'
import { type NamedGraph, Unreadable } from '../log/keeper.ts'
import { noOwner } from '../log/no-owner.ts'
import type { OperationParts } from '../operations/parts.ts'
import { type PartsFor, TENANT_HEADER } from '../operations/tenant-view.ts'
import { MAX_WAIT_MS } from './wait-ms.ts'

/** Bytes of an answer that is read as a whole, so that clients can send the next request on the same connection. */
const WHOLE_ANSWER_BYTES = 1024 * 1024

/** Headers of a request that are about its connection or its page. The guard has looked at them. */
const OWN_REQUEST_HEADERS =
  /^(host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|accept-encoding|authorization|x-taskmill-caller|cookie|origin|sec-.*)$/
const OWN_ANSWER_HEADERS =
  /^(connection|keep-alive|transfer-encoding|content-length|content-encoding|date|x-taskmill-(replica|tenant))$/

export interface ForwardOptions {
  readonly traceId: string
  /** Absent if it was not read yet. */
  readonly body?: Uint8Array
  /** Milliseconds that the request asks to wait. */
  readonly waitMs: number
}

/** The answer of the owner. Undefined if the graph is here, or nowhere. Throws 503 while it has no owner. */
export type Forward = (request: Request, named: NamedGraph, options: ForwardOptions) => Promise<Response | undefined>

export function forwarderOf(app: AnyElysia, partsFor: PartsFor): Forward {
  return async (request, named, { traceId, body, waitMs }) => {
    const {
      keeper: { others },
      maxBodyBytes,
    } = partsFor(request)
    const owner = await others.ownerOf(named)
    if (owner === undefined) return undefined
    if (request.headers.has(others.hopHeader)) throw noOwner(`replica ${owner.id} has the graph now`)
    const { method, signal } = request
    const headers = copied(request.headers, OWN_REQUEST_HEADERS)
    headers.set(TRACE_HEADER, traceId)
    passOnCaller(headers, callerOf(request))
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const sent = body ?? (hasBody ? await readBody(app, request, maxBodyBytes) : undefined)
    app.server?.timeout(request, 0) // `ask` has time limits
    const path = urlOf(request).slice(urlOf(request).indexOf('/', 'https://'.length))
    const answer = await others.ask(owner, { method, path, headers, signal, waitMs, ...(sent && { body: sent }) })
    app.server?.timeout(request, secondsToTake(request, answer))
    return isEndless(answer, request) ? endingWithToken(request, await handedOn(answer)) : handedOn(answer)
  }
}

/** Sends on the requests for a graph or a task that are in the path, or in the query `graph_id` of GET /tasks. */
export function addForwarding(app: AnyElysia, parts: OperationParts, partsFor: PartsFor): void {
  const { others, replica } = parts.keeper
  const forward = forwarderOf(app, partsFor)
  app.onRequest(({ request, set }) => {
    if (!request.headers.has(others.hopHeader)) return
    set.headers[others.replicaHeader] = String(replica?.id)
    const tenant = request.headers.get(TENANT_HEADER)
    if (tenant !== null) set.headers[TENANT_HEADER] = tenant
  })
  app.onBeforeHandle(({ request, route, params = {}, set }) => {
    const query = new URLSearchParams(request.url.includes('?') ? request.url.slice(request.url.indexOf('?')) : '')
    const named = namedIn(route, params, query)
    if (named === undefined) return undefined
    return forward(request, named, { traceId: traceIdOf(set), waitMs: waitMsIn(query) }).catch((error) => {
      // Whoever deletes the graph needs nobody to read it.
      if (error instanceof Unreadable && request.method === 'DELETE' && route === '/graphs/:id') return undefined
      throw error
    })
  })
}

function namedIn(route: string, { id }: Readonly<Record<string, string>>, query: URLSearchParams) {
  const graphId = query.get('graph_id')
  if (route === '/tasks' && graphId) return { graphId }
  if (id === undefined) return undefined
  if (route.startsWith('/graphs/:id')) return { graphId: id }
  return route.startsWith('/tasks/:id') || route.startsWith('/mcp/tasks/:id') ? { taskId: id } : undefined
}

/** The owner checks it. A followed log begins with the first output, which may take hours. */
const waitMsIn = (query: URLSearchParams): number =>
  query.has('follow') ? Number.POSITIVE_INFINITY : Math.min(Number(query.get('wait_ms')) || 0, MAX_WAIT_MS)

function copied(headers: Headers, leftOut: RegExp): Headers {
  const copy = new Headers()
  for (const [name, value] of headers) if (!leftOut.test(name)) copy.append(name, value)
  return copy
}

/** Seconds without a byte until the answer is given up. A followed log may be silent for hours. */
function secondsToTake(request: Request, answer: Response): number {
  if (isEventStream(answer)) return IDLE_TIMEOUT_SECONDS
  return isLog(request) ? 0 : WRITE_TIMEOUT_SECONDS
}

export const isEventStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true

const isLog = (request: Request): boolean => pathOf(request).endsWith('/logs')

const isEndless = (answer: Response, request: Request): boolean => isEventStream(answer) || isLog(request)

async function handedOn(answer: Response): Promise<Response> {
  const { status, body } = answer
  const headers = copied(answer.headers, OWN_ANSWER_HEADERS)
  const length = answer.headers.get('content-length')
  if (body === null || (length !== null && Number(length) <= WHOLE_ANSWER_BYTES)) {
    const bytes = body === null || status === 204 ? null : await answer.bytes()
    return new Response(bytes, { status, headers })
  }
  return new Response(passedOn(body), { status, headers })
}

/** Ends with the connection to the owner, and breaks if that breaks. */
function passedOn(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const part = await reader.read().catch(() => undefined)
      if (part === undefined) controller.error(new Error('the replica that has the graph is gone'))
      else if (part.done) controller.close()
      else controller.enqueue(part.value)
    },
    cancel: (reason) => reader.cancel(reason).catch(() => {}),
  })
}
