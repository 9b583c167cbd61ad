/** The audit log: what of each request goes into it, and /audit and /audit/events, which show it. */
import type { AnyElysia } from 'elysia'
import { AuditResponse } from '../../shared/contract/audit.ts'
import { DEFAULT_AUDIT_PAGE, MAX_AUDIT_PAGE } from '../../shared/contract/audit-limits.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import type { RouteRight } from '../../shared/contract/rights.ts'
import { callerOf, endingWithToken } from '../../shared/http/callers.ts'
import { anyText, described, descriptionIn, json, other, wholeNumber } from '../../shared/http/openapi/route.ts'
import { urlOf } from '../../shared/http/request-url.ts'
import { type RoutedRequest, traceIdOf } from '../../shared/http/service.ts'
import { IDLE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import type { Asked, AuditLog } from '../log/audit-log.ts'
import { acceptedFor } from '../operations/intake.ts'
import type { OperationParts } from '../operations/parts.ts'
import { followAudit, placeOf } from './audit-events.ts'
import { EventStream, KeepAlive } from './event-stream.ts'
import { EVENT_STREAM_HEADERS } from './events.ts'
import { limitOf, timeOf } from './query-values.ts'
import type { StreamLimits } from './stream-limits.ts'

/** Rights of routes that change nothing, or that write their own records. */
const UNAUDITED: ReadonlySet<RouteRight | undefined> = new Set(['none', 'read', 'any', 'service'])

/** Where a request comes from; undefined for a Unix socket. */
export const addressOf = (app: AnyElysia, request: Request): string | undefined =>
  app.server?.requestIP(request)?.address

/** Writes a record of each request that may change something, also of those that lack a right. */
export class RequestAudit {
  readonly #audit: AuditLog
  #app: AnyElysia | undefined
  /** The ids of the records of requests that are not answered yet. */
  readonly #open = new WeakMap<Request, string>()
  /** By method and route. */
  readonly #audited = new Map<string, boolean>()

  constructor(audit: AuditLog) {
    this.#audit = audit
  }

  /** Has the app, whose `onRouted` calls `begin`, wait for the record of a request and tell of answers. */
  follow(app: AnyElysia): void {
    this.#app = app
    if (this.#audit.written !== undefined)
      app.onBeforeHandle(async ({ request }) => {
        if (this.#open.has(request)) await this.#audit.written?.()
      })
    app.onAfterResponse(({ request, set, responseValue }) => {
      const id = this.#open.get(request)
      if (id === undefined) return
      const graph_id = acceptedFor(request)
      const { status } = responseValue instanceof Response ? responseValue : set // of another replica, or ours
      this.#audit.end(id, { ...(graph_id !== undefined && { graph_id }), status: Number(status ?? 200) })
    })
  }

  readonly begin = ({ request, route, set }: RoutedRequest): void => {
    const { method } = request
    if (!this.#isAudited(method, route)) return
    this.#open.set(request, this.#audit.begin(this.#asked({ request, route, set }, callerOf(request)?.grant.name)))
  }

  /** Writes the record of a request whose caller, `by`, is known only when it is answered. */
  tell(context: RoutedRequest, by: string | undefined, status: number): void {
    this.#audit.end(this.#audit.begin(this.#asked(context, by)), { status })
  }

  #asked({ request, route, set }: RoutedRequest, by: string | undefined): Asked {
    const from = addressOf(this.#app!, request)
    const url = urlOf(request)
    return {
      ...(by !== undefined && { by }),
      ...(from !== undefined && { from }),
      door: route.startsWith('/adapters/') ? 'adapter' : 'http',
      what: `${request.method} ${route}`,
      target: url.slice(url.indexOf('/', url.indexOf('://') + 3)),
      trace_id: traceIdOf(set),
    }
  }

  #isAudited(method: string, route: string): boolean {
    if (method === 'GET' || method === 'HEAD') return false
    const name = `${method} ${route}`
    const known = this.#audited.get(name)
    if (known !== undefined) return known
    const found = this.#app!.routes.find((candidate) => candidate.path === route && candidate.method === method)
    const isAudited = found !== undefined && !UNAUDITED.has(descriptionIn(found.hooks)?.right)
    this.#audited.set(name, isAudited)
    return isAudited
  }
}

export function addAuditRoutes(app: AnyElysia, parts: OperationParts, limits: StreamLimits): void {
  const { audit, eventStreams, stopping } = parts
  const keepAlive = new KeepAlive(limits.keepAliveMs)
  /** Throws 400. */
  const kept = (): AuditLog => {
    if (audit !== undefined) return audit
    throw badRequest('this service keeps no audit log (start it with --audit all, or --tokens-file)')
  }
  app.get(
    '/audit',
    async ({ query }): Promise<AuditResponse> => {
      const limit = limitOf(query.limit, { most: MAX_AUDIT_PAGE, standard: DEFAULT_AUDIT_PAGE })
      const since = timeOf('since', query.since) ?? 0
      const { records, hasMore } = await kept().read({ since, before: query.before, limit })
      return { records, ...(hasMore && { next: records.at(-1)!.id }) }
    },
    described({
      section: 'The service',
      right: 'operate',
      isOfService: true,
      summary: 'Read the audit log',
      description: 'Who asked for what: each request that may change something, the newest first.',
      query: {
        since: anyText('Records of this time (RFC 3339) or later.'),
        before: anyText('next of an earlier answer: continues with older records.'),
        limit: wholeNumber(1, MAX_AUDIT_PAGE, `Records of a page. Default ${DEFAULT_AUDIT_PAGE}.`),
      },
      answers: { 200: json(AuditResponse, 'A page of records.') },
      errors: { 400: 'A parameter is invalid, or the service keeps no audit log.' },
    }),
  )
  app.get(
    '/audit/events',
    ({ request }): Response => {
      const lastId = request.headers.get('last-event-id')
      const sinceMs = lastId === null ? Date.now() : placeOf(lastId)
      const log = kept()
      if (request.method === 'HEAD') return new Response(null, { headers: EVENT_STREAM_HEADERS })
      const leave = eventStreams.enter('clients')
      app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
      const client = new EventStream(keepAlive, limits.slowClientMs)
      keepAlive.add(client)
      const left = new AbortController()
      client.onClosed = () => left.abort()
      const signal = AbortSignal.any([left.signal, stopping])
      void followAudit({ audit: log, client, sinceMs, signal }).finally(() => {
        client.end()
        leave()
      })
      return endingWithToken(request, new Response(client.body, { headers: EVENT_STREAM_HEADERS }))
    },
    described({
      section: 'The service',
      right: 'operate',
      isOfService: true,
      summary: 'Watch the audit log',
      description:
        'An event request with each new record, once its request is answered, or after 5 s. lagging is the last event for a client that has missed too much: read the pages.',
      headers: {
        'Last-Event-ID': 'The id of the last record that was received. Records of the 10 s before it come again.',
      },
      answers: { 200: other('text/event-stream', 'The events, until the client closes the connection.') },
      errors: {
        400: 'The id is invalid, or the service keeps no audit log.',
        503: 'Too many streams are open.',
      },
    }),
  )
}
