/** The audit log: what of each request goes into it, and /audit, which shows it. */
import type { AnyElysia } from 'elysia'
import { AuditResponse } from '../../shared/contract/audit.ts'
import { DEFAULT_AUDIT_PAGE, MAX_AUDIT_PAGE } from '../../shared/contract/audit-limits.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import type { RouteRight } from '../../shared/contract/rights.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { anyText, described, descriptionIn, json, wholeNumber } from '../../shared/http/openapi/route.ts'
import { urlOf } from '../../shared/http/request-url.ts'
import { type RoutedRequest, traceIdOf } from '../../shared/http/service.ts'
import type { Asked, AuditLog } from '../log/audit-log.ts'
import { acceptedFor } from '../operations/intake.ts'
import type { OperationParts } from '../operations/parts.ts'
import { limitOf, timeOf } from './query-values.ts'

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

export function addAuditRoute(app: AnyElysia, { audit }: OperationParts): void {
  app.get(
    '/audit',
    async ({ query }): Promise<AuditResponse> => {
      const limit = limitOf(query.limit, { most: MAX_AUDIT_PAGE, standard: DEFAULT_AUDIT_PAGE })
      const since = timeOf('since', query.since) ?? 0
      if (audit === undefined)
        throw badRequest('this service keeps no audit log (start it with --audit all, or --tokens-file)')
      const { records, hasMore } = await audit.read({ since, before: query.before, limit })
      return { records, ...(hasMore && { next: records.at(-1)!.id }) }
    },
    described({
      section: 'The service',
      right: 'operate',
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
}
