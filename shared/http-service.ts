/**
 * What every HTTP service of ours does alike: trace ids, the guard, time limits, bounded bodies, error bodies, 404 and 405,
 * listening and a graceful stop. Routes are plain Elysia; they throw `ServiceError` and never build an error body.
 *
 * Time limits are those of the specification: 15 s for a request to arrive (dripping included), 30 s for the answer to
 * leave, 60 s for an idle connection. Bun counts them in steps of 4 s. A request line and headers that do not arrive
 * within 12 s end the connection as well; that one is Bun's own and fixed.
 */
import { type AnyElysia, Elysia } from 'elysia'
import { messageOf, ServiceError, systemCodeOf, UsageError } from './errors.ts'
import type { Guard } from './http-guard.ts'
import type { Log } from './log.ts'
import { TRACE_HEADER, traceIdFrom } from './trace.ts'

export const READ_TIMEOUT_SECONDS = 15
export const WRITE_TIMEOUT_SECONDS = 30
export const IDLE_TIMEOUT_SECONDS = 60

/** The path and headers an error body may name. */
export type ErrorBody = (error: ServiceError) => unknown

export interface HttpServiceOptions {
  readonly log: Log
  /** Asked about every request, known path or not. */
  readonly guard: Guard
  /** Turns an error into the body of this service's contract. */
  readonly errorBody: ErrorBody
  /** A request that says it has a longer body is refused, also where nobody reads that. */
  readonly maxBodyBytes: number
}

/** The headers an Elysia handler sets; ours always hold the trace id. */
type ResponseSettings = { headers: Record<string, string | number | undefined> }

/** The trace id of the request whose answer `set` describes. */
export const traceIdOf = (set: ResponseSettings): string => String(set.headers[TRACE_HEADER])

/** An Elysia app with our limits and errors. Add routes to it, then call `refuseOtherMethods`. */
export function httpService({ log, guard, errorBody, maxBodyBytes }: HttpServiceOptions) {
  const app: AnyElysia = new Elysia({ normalize: false, strictPath: true })
  app
    .onRequest(({ request, set }) => {
      const hasBody = request.method !== 'GET' && request.method !== 'HEAD'
      app.server?.timeout(request, hasBody ? READ_TIMEOUT_SECONDS : WRITE_TIMEOUT_SECONDS)
      set.headers[TRACE_HEADER] = traceIdFrom(request.headers.get(TRACE_HEADER))
      set.headers['content-type'] = 'application/json'
      const path = pathOf(request)
      guard(request, path)
      if (path.includes('%') && !isDecodable(path)) {
        throw new ServiceError(400, `malformed escape in the path: ${path} (expected UTF-8, percent-encoded)`)
      }
      if (hasBody && Number(request.headers.get('content-length')) > maxBodyBytes) throw bodyTooLarge(maxBodyBytes)
    })
    .onBeforeHandle(({ request, route }) => {
      // The server finds the route by the path as it came, and the path that was guarded may be another one then: in a URL
      // `/tasks/..` is `/`, and so is `/tasks/..\..`.
      const [fixedPart = route] = route.split(':', 1)
      if (!pathOf(request).startsWith(fixedPart)) guard(request, route)
    })
    .onError(({ code, error, set, request }) => {
      const refusal = asServiceError(code, error, request)
      set.status = refusal.status
      Object.assign(set.headers, refusal.headers)
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

/** A route of an app that is asked more often than all others together. */
export interface BusyRoute {
  readonly path: string
  readonly method: 'POST'
  /** Of an answer that is no refusal. */
  readonly status: number
  /** The body of the answer, as JSON. Throws `ServiceError`. */
  answer(request: Request, traceId: string): Promise<string>
}

/**
 * Adds a route that the server asks without Elysia's help, by the same rules: 1.5 µs of 12 less for each request, of
 * which a part is for a URL that nobody needs to look at. Elysia has it as well: it knows all paths and their methods, and logs
 * each request where somebody wants that.
 */
export function addBusyRoute(app: AnyElysia, { log, guard, errorBody }: HttpServiceOptions, route: BusyRoute): void {
  const { path, method, status } = route
  app.route(
    method,
    path,
    (context) => {
      const { set, request } = context as { set: ResponseSettings & { status: number }; request: Request }
      set.status = status
      return route.answer(request, traceIdOf(set))
    },
    { parse: 'none' },
  )
  if (log.debugging) return
  const answer = async (request: Request): Promise<Response> => {
    app.server?.timeout(request, READ_TIMEOUT_SECONDS)
    const traceId = traceIdFrom(request.headers.get(TRACE_HEADER))
    const headers = { [TRACE_HEADER]: traceId, 'content-type': 'application/json' }
    try {
      guard(request, path)
      return new Response(await route.answer(request, traceId), { status, headers })
    } catch (error) {
      const refusal = asServiceError('', error, request)
      logRefusal(log, refusal, request, traceId)
      return Response.json(errorBody(refusal), {
        status: refusal.status,
        headers: { ...headers, ...refusal.headers, 'content-type': 'application/json' },
      })
    }
  }
  app.config.serve = { ...app.config.serve, routes: { ...app.config.serve?.routes, [path]: { [method]: answer } } }
}

/** For each path that has routes, answers 405 with `Allow` to the methods that have none. */
export function refuseOtherMethods(app: AnyElysia): void {
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

export const pathOf = (request: Request): string => {
  const start = request.url.indexOf('/', request.url.indexOf('://') + 3)
  const end = request.url.indexOf('?', start)
  return request.url.slice(start, end < 0 ? undefined : end)
}

/** The server itself reads what is not UTF-8, or no escape at all, as some other character. */
function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

function asServiceError(code: string | number, error: unknown, request: Request): ServiceError {
  if (error instanceof ServiceError) return error
  const cause = (error as Error | undefined)?.cause
  if (cause instanceof ServiceError) return cause // whatever a body reader throws arrives wrapped
  if (code === 'NOT_FOUND') return new ServiceError(404, `not found: ${request.method} ${pathOf(request)}`)
  return new ServiceError(500, 'internal error', { cause: cause ?? error })
}

function logRefusal(log: Log, refusal: ServiceError, request: Request, traceId: string): void {
  const fields = { trace_id: traceId, method: request.method, path: pathOf(request), status: refusal.status }
  if (refusal.status >= 500) log.error(refusal.message, { ...fields, cause: causeOf(refusal) })
  else log.warn('request refused', { ...fields, error: refusal.message })
}

const causeOf = (error: ServiceError): string | undefined => {
  const cause = error.cause
  return cause instanceof Error ? (cause.stack ?? cause.message) : cause === undefined ? undefined : String(cause)
}

/**
 * Reads the whole body of a request of `app`, at most `maxBytes`, or throws 413 without waiting for the rest of it. From
 * then on the time counts in which the answer must leave.
 *
 * For routes with `parse: 'none'`: what Elysia does before a parser of one's own (a stream of the body that nobody reads,
 * a member added to the context and deleted again, a getter for the server) costs 3 µs a request.
 */
export async function readBody(app: AnyElysia, request: Request, maxBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > maxBytes) throw bodyTooLarge(maxBytes)
  const body = declared === null ? await bodyInChunks(request, maxBytes) : await request.bytes()
  app.server?.timeout(request, WRITE_TIMEOUT_SECONDS)
  return body
}

/** The body of a request that does not say how long it is. */
async function bodyInChunks(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > maxBytes) throw bodyTooLarge(maxBytes)
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : new Uint8Array(Buffer.concat(chunks, size))
}

const bodyTooLarge = (maxBytes: number) =>
  new ServiceError(413, `request body is larger than ${maxBytes} bytes (the limit is --max-body-bytes)`)

export interface ListenAddress {
  readonly hostname: string
  readonly port: number
}

/** `host:port`, `[v6]:port` or `:port` (all interfaces); port 0 asks the system for a free one. Throws `UsageError`. */
export function parseListenAddress(text: string, flag: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) {
    throw new UsageError(`invalid value "${text}" for --${flag}: expected host:port, such as 127.0.0.1:8080`)
  }
  return { hostname: match[1] || match[2] || '0.0.0.0', port }
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied, as for ports below 1024',
  EADDRNOTAVAIL: 'this machine has no such address',
}

export interface RunningHttpService {
  /** `http://host:port` as one can reach it. */
  readonly url: string
  /** Refuses new connections and resolves when the open requests are answered, at the latest after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Starts to listen. Throws `UsageError` with the remedy when the address is not to be had. */
export function listen(app: AnyElysia, address: ListenAddress, flag: string): RunningHttpService {
  try {
    app.listen({
      hostname: address.hostname,
      port: address.port,
      reusePort: false, // two services on one port would share its requests without a word
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // Our own limit answers with a JSON body; the server's would cut the connection without one.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    })
  } catch (error) {
    const where = `${address.hostname}:${address.port}`
    if (systemCodeOf(error) === 'EADDRINUSE') {
      throw new UsageError(`cannot listen on ${where}: the address is in use (choose another with --${flag})`)
    }
    const reason = LISTEN_FAULTS[systemCodeOf(error) ?? ''] ?? messageOf(error)
    throw new UsageError(`cannot listen on ${where}: ${reason} (choose another with --${flag})`)
  }
  const server = app.server!
  return {
    url: server.url.href.replace(/\/$/, ''),
    async stop(graceMs) {
      const closed = server.stop(false)
      const late = new Promise<'late'>((resolve) => setTimeout(resolve, graceMs, 'late').unref())
      if ((await Promise.race([closed, late])) === 'late') await server.stop(true)
    },
  }
}
