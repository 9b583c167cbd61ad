/**
 * Answers requests to the routes of an Elysia app in one pass: its hooks, the handler, the answer.
 *
 * Elysia itself composes an async function with an `await` for each hook and handler whose source looks asynchronous to
 * it, as nearly all minified ones do. To answer later costs the server 1 µs a request: Bun copies address and headers of
 * the request first. Here, hooks and handlers that return a value are answered in the same turn of the event loop.
 *
 * Elysia keeps what this does not do: routes with a wildcard, with parameters that may be repeated or with hooks of other
 * kinds, requests that match no route, and the answers to errors.
 */
import type { BunRequest } from 'bun'
import type { AnyElysia, InternalRoute } from 'elysia'
import { mapResponse } from 'elysia/adapter/bun/handler'
import { parseQueryFromURL } from 'elysia/parse-query'
import { httpTimesOf, isTimingHook } from './service.ts'

/** What hooks and handlers get. */
interface RouteContext {
  readonly request: Request
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly route: string
  readonly set: { headers: Record<string, string>; status: number }
}

type Step = (context: RouteContext) => unknown

type RouteHandler = (request: BunRequest) => Response | Promise<Response>

/** The part of an app that its type hides. */
interface AppEvents {
  readonly event: { readonly request?: readonly { readonly fn: Step }[] }
  handleError(context: RouteContext, error: unknown, skipGlobal: boolean): Promise<Response>
}

interface RouteHooks {
  readonly query?: { readonly properties: Readonly<Record<string, { readonly anyOf?: unknown }>> }
  readonly beforeHandle?: readonly { readonly fn: Step }[]
  readonly afterResponse?: readonly { readonly fn: Step }[]
}

const JSON_TYPE = 'application/json'

/** What this does. An error is left to Elysia, a body to the handler. */
const KNOWN_HOOKS: ReadonlySet<string> = new Set([
  'detail',
  'request',
  'parse',
  'query',
  'beforeHandle',
  'afterResponse',
  'error',
])

/** Handlers by path and method, for the option `routes` of `Bun.serve`. */
export function routesInOnePass(app: AnyElysia): Record<string, Record<string, RouteHandler>> {
  const routes: Record<string, Record<string, RouteHandler>> = {}
  for (const route of app.routes) {
    if (!isInOnePass(route)) continue
    routes[route.path] = { ...routes[route.path], [route.method]: inOnePass(app as unknown as AppEvents, route) }
  }
  return routes
}

function isInOnePass({ method, path, handler, hooks }: InternalRoute): boolean {
  if (method === 'ALL' || path.endsWith('*') || typeof handler !== 'function') return false
  for (const name in hooks) if (!KNOWN_HOOKS.has(name) && !isAbsent(hooks[name as keyof typeof hooks])) return false
  const { properties = {} } = (hooks as RouteHooks).query ?? {}
  for (const name in properties) if (properties[name]!.anyOf !== undefined) return false
  return true
}

const isAbsent = (hook: unknown): boolean => hook === undefined || (Array.isArray(hook) && hook.length === 0)

/** Frozen, because all requests without a query share it. */
const NO_QUERY: Readonly<Record<string, string>> = Object.freeze(Object.create(null))

const JSON_HEADERS = new Headers({ 'content-type': JSON_TYPE })

/** An answer in JSON with headers that are copied from one object: to read all of them from `set` takes 0.4 µs more. */
function jsonResponse(json: string, { headers, status }: RouteContext['set']): Response {
  const response = new Response(json, { headers: JSON_HEADERS, status })
  for (const name in headers) if (name !== 'content-type') response.headers.set(name, headers[name]!)
  return response
}

/** Whether Elysia would encode `answer` as JSON. `Response.json`, which it calls, takes twice the time. */
const isPlain = (answer: unknown): boolean =>
  typeof answer === 'object' && answer !== null && (answer.constructor === Object || answer.constructor === Array)

function inOnePass(app: AppEvents, { method, path: route, handler, hooks }: InternalRoute): RouteHandler {
  const { query: querySchema, beforeHandle = [], afterResponse: all = [] } = hooks as RouteHooks
  const afterResponse = all.filter(({ fn }) => !isTimingHook(fn))
  const onRequest = (app.event.request ?? []).filter(({ fn }) => !isTimingHook(fn))
  const handle = handler as Step

  const queryOf = (request: Request): RouteContext['query'] => {
    if (querySchema === undefined) return NO_QUERY
    const start = request.url.indexOf('?')
    return start < 0 ? NO_QUERY : parseQueryFromURL(request.url, start + 1)
  }

  const respond = (answer: unknown, context: RouteContext): Response => {
    const { set, request } = context
    for (const { fn } of afterResponse) setImmediate(fn, { ...context, responseValue: answer })
    if (set.headers['content-type'] === JSON_TYPE) {
      if (typeof answer === 'string') return jsonResponse(answer, set)
      if (isPlain(answer)) return jsonResponse(JSON.stringify(answer), set)
    }
    return mapResponse(answer, set, request) as Response
  }

  /** Runs the hooks from `from` on, then the handler. */
  const proceed = (context: RouteContext, from: number): Response | Promise<Response> => {
    for (let i = from; i < beforeHandle.length; i++) {
      const early = beforeHandle[i]!.fn(context)
      if (early instanceof Promise) return afterHook(early, context, i + 1)
      if (early !== undefined) return respond(early, context)
    }
    const answer = handle(context)
    return answer instanceof Promise ? afterHandler(answer, context) : respond(answer, context)
  }

  const afterHook = async (pending: Promise<unknown>, context: RouteContext, next: number): Promise<Response> => {
    try {
      const early = await pending
      return early === undefined ? await proceed(context, next) : respond(early, context)
    } catch (error) {
      return app.handleError(context, error, false)
    }
  }

  const afterHandler = async (pending: Promise<unknown>, context: RouteContext): Promise<Response> => {
    try {
      return respond(await pending, context)
    } catch (error) {
      return app.handleError(context, error, false)
    }
  }

  const answerTo = (request: BunRequest): Response | Promise<Response> => {
    const set = { headers: {}, status: 200 }
    const context: RouteContext = { request, params: request.params, query: queryOf(request), route, set }
    try {
      for (let i = 0; i < onRequest.length; i++) onRequest[i]!.fn(context)
      return proceed(context, 0)
    } catch (error) {
      return app.handleError(context, error, false)
    }
  }

  const timed = httpTimesOf(app)?.timerOf(method, route)
  if (timed === undefined) return answerTo
  return (request) => {
    const startedAt = performance.now()
    const answer = answerTo(request)
    if (answer instanceof Promise) void answer.then(({ status }) => timed(startedAt, status))
    else timed(startedAt, answer.status)
    return answer
  }
}
