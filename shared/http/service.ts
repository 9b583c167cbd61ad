/**
 * The app of our HTTP services: trace ids, the guard, time limits, limited bodies, error bodies, 404 and 405. Routes are plain
 * Elysia. They throw `ServiceError` and never build an error body.
 */
import { type AnyElysia, Elysia } from 'elysia'
import { ServiceError } from '../contract/errors.ts'
import type { Log } from '../logs/log.ts'
import {
  parseTraceParent,
  type RequestTrace,
  TRACE_HEADER,
  TRACE_PARENT_HEADER,
  TRACE_STATE_HEADER,
  traceIdFrom,
  traceStateFrom,
} from '../logs/trace.ts'
import type { UnknownFields } from '../request/unknown-names.ts'
import { callerOf } from './callers.ts'
import type { Guard } from './guard.ts'
import { QuerySchemas } from './query-parameters.ts'
import { bodyTooLarge, CALLER_GONE } from './request-body.ts'
import { isDecodable, isWithoutHost, pathOf } from './request-url.ts'
import { RouteRights } from './route-rights.ts'
import { READ_TIMEOUT_SECONDS, WRITE_TIMEOUT_SECONDS } from './time-limits.ts'
import { HttpTimes } from './times.ts'

/** `Retry-After` by status. What is full (429) takes longer to have room than what is away or busy (503). */
const RETRY_AFTER_SECONDS: Readonly<Record<number, number>> = { 429: 5, 503: 1 }

export type ErrorBody = (error: ServiceError) => unknown

export interface HttpServiceOptions {
  readonly log: Log
  /** Checks every request, also of unknown paths. */
  readonly guard: Guard
  /** The body of an error answer in the contract of this service. */
  readonly errorBody: ErrorBody
  /** Limit for `content-length`, also on routes that read no body. */
  readonly maxBodyBytes: number
  /** Whether the route of this path limits its body itself. Default: none does. */
  readonly limitsItsBody?: (path: string) => boolean
  /** Whether query parameters that the route does not declare are refused. */
  readonly unknownFields: UnknownFields
  /** Called with each request to a route whose caller is known, before its rights are looked at. */
  readonly onRouted?: ((context: RoutedRequest) => void) | undefined
}

export interface RoutedRequest {
  readonly request: Request
  readonly route: string
  readonly set: ResponseSettings
}

/** The headers that an Elysia handler sets. Ours always contain the trace id. */
type ResponseSettings = { headers: Record<string, string | number | undefined> }

/** The trace id of the request that `set` belongs to. */
export const traceIdOf = (set: ResponseSettings): string => String(set.headers[TRACE_HEADER])

/** The trace of `request`, which `set` belongs to. */
export function traceOf(set: ResponseSettings, { headers }: Request): RequestTrace {
  const traceId = traceIdOf(set)
  const isOfCaller = parseTraceParent(traceId) !== undefined && headers.get(TRACE_PARENT_HEADER) === traceId
  return isOfCaller ? { traceId, traceState: traceStateFrom(headers.get(TRACE_STATE_HEADER)) } : { traceId }
}

const times = new WeakMap<object, HttpTimes>()

/** How long requests to the routes of an app take. Undefined for an app that `httpService` did not make. */
export const httpTimesOf = (app: object): HttpTimes | undefined => times.get(app)

const timingHooks = new WeakSet<object>()

/** Whether a hook times requests that Elysia answers itself. Those that `http-routes.ts` answers are timed there. */
export const isTimingHook = (hook: object): boolean => timingHooks.has(hook)

function addTimes(app: AnyElysia): void {
  const all = new HttpTimes()
  const startedAt = new WeakMap<Request, number>()
  const begin = ({ request }: { request: Request }) => {
    startedAt.set(request, performance.now())
  }
  const end = ({ request, route, set }: { request: Request; route: string; set: { status?: number | string } }) => {
    const beganAt = startedAt.get(request) // absent for requests that `http-routes.ts` times, whose errors come here
    if (route && beganAt !== undefined) all.timerOf(request.method, route)(beganAt, Number(set.status ?? 200))
  }
  for (const hook of [begin, end]) timingHooks.add(hook)
  app.onRequest(begin as () => void).onAfterResponse(end as (context: object) => void)
  times.set(app, all)
}

/** An Elysia app with our limits and errors. Add routes to it, then call `refuseOtherMethods`. */
export function httpService(options: HttpServiceOptions) {
  const { log, guard, errorBody, maxBodyBytes, unknownFields, onRouted, limitsItsBody = () => false } = options
  const app: AnyElysia = new Elysia({ normalize: false, strictPath: true })
  const queries = new QuerySchemas(app)
  const rights = new RouteRights(app)
  addTimes(app)
  app
    .onRequest(({ request, set }) => {
      const hasBody = request.method !== 'GET' && request.method !== 'HEAD'
      app.server?.timeout(request, hasBody ? READ_TIMEOUT_SECONDS : WRITE_TIMEOUT_SECONDS)
      const { headers } = request
      set.headers[TRACE_HEADER] = traceIdFrom(headers.get(TRACE_HEADER), headers.get(TRACE_PARENT_HEADER))
      set.headers['content-type'] = 'application/json'
      const path = pathOf(request)
      guard(request, path)
      if (isWithoutHost(request) && request.url.includes('/', path.length)) {
        throw new ServiceError(400, 'a request without a Host header cannot have "/" in its query (send Host, or %2F)')
      }
      if (path.includes('%') && !isDecodable(path)) {
        throw new ServiceError(400, `malformed escape in the path: ${path} (expected UTF-8, percent-encoded)`)
      }
      const isTooLarge = hasBody && Number(request.headers.get('content-length')) > maxBodyBytes
      if (isTooLarge && !limitsItsBody(path)) throw bodyTooLarge(maxBodyBytes)
    })
    .onBeforeHandle(({ request, route, set }) => {
      // The server routes by the raw path, but `onRequest` guards the path of a parsed URL, in which `/tasks/..` and
      // `/tasks/..\..` are `/`. If the two differ, the route is guarded, too.
      if (!pathOf(request).startsWith(fixedPartOf(route))) {
        if (isWithoutHost(request)) throw notFound(request)
        guard(request, route)
      }
      onRouted?.({ request, route, set })
      const caller = callerOf(request)
      if (caller !== undefined) rights.ensure(caller, request.method, route)
      if (unknownFields === 'refuse' && request.url.includes('?')) queries.check(request, route)
    })
    .onError(({ code, error, set, request }) => {
      const refusal = asServiceError(code, error, request)
      set.status = refusal.status
      Object.assign(set.headers, retryAfter(refusal.status), refusal.headers)
      set.headers['content-type'] = 'application/json'
      logRefusal(log, refusal, request, traceIdOf(set))
      return errorBody(refusal)
    })
  if (log.debugging) {
    app.onAfterResponse(({ request, set }) => {
      log.debug('request', {
        trace_id: traceIdOf(set),
        method: request.method,
        path: pathOf(request),
        status: set.status,
      })
    })
  }
  return app
}

/**
 * Adds a route to each path that answers 405 with `Allow` to the methods without a route. Elysia alone uses these routes, so they
 * are added just before it composes its handler: they are half of all routes.
 */
export function refuseOtherMethods(app: AnyElysia): void {
  Object.defineProperty(app, 'fetch', {
    configurable: true,
    get: () => {
      Reflect.deleteProperty(app, 'fetch')
      addRefusals(app)
      return app.fetch
    },
  })
}

function addRefusals(app: AnyElysia): void {
  const methodsByPath = new Map<string, Set<string>>()
  for (const { path, method } of app.routes) {
    const methods = methodsByPath.get(path) ?? new Set()
    methodsByPath.set(path, methods.add(method))
    if (method === 'GET') methods.add('HEAD')
  }
  for (const [path, methods] of methodsByPath) {
    const allow = [...methods].sort().join(', ')
    app.all(path, (context) => {
      const { request } = context as { request: Request }
      throw new ServiceError(405, `method not allowed: ${request.method} ${pathOf(request)} (allowed: ${allow})`, {
        headers: { allow },
      })
    })
  }
}

/** When a caller may ask again, unless the refusal says so itself. */
const retryAfter = (status: number): { readonly 'retry-after'?: string } =>
  status in RETRY_AFTER_SECONDS ? { 'retry-after': String(RETRY_AFTER_SECONDS[status]) } : {}

/** The path of a route up to its first parameter. */
function fixedPartOf(route: string): string {
  const end = route.indexOf(':')
  return end < 0 ? route : route.slice(0, end)
}

function asServiceError(code: string | number, error: unknown, request: Request): ServiceError {
  if (error instanceof ServiceError) return error
  const cause = (error as Error | undefined)?.cause
  if (cause instanceof ServiceError) return cause // Elysia wraps errors of body readers
  if (code === 'NOT_FOUND') return notFound(request)
  return new ServiceError(500, 'internal error', { cause: cause ?? error })
}

const notFound = (request: Request) => new ServiceError(404, `not found: ${request.method} ${pathOf(request)}`)

function logRefusal(log: Log, refusal: ServiceError, request: Request, traceId: string): void {
  const fields = { trace_id: traceId, method: request.method, path: pathOf(request), status: refusal.status }
  if (refusal.status >= 500) log.error('request failed', { ...fields, error: refusal.message, cause: causeOf(refusal) })
  else if (refusal.status === CALLER_GONE) log.info('request given up', { ...fields, error: refusal.message })
  else log.warn('request refused', { ...fields, error: refusal.message })
}

const causeOf = (error: ServiceError): string | undefined => {
  const cause = error.cause
  return cause instanceof Error ? (cause.stack ?? cause.message) : cause === undefined ? undefined : String(cause)
}
