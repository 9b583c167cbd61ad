/**
 * The common part of our HTTP services: trace ids, the guard, time limits, limited bodies, error bodies, 404 and 405,
 * listening, and a graceful stop. Routes are plain Elysia. They throw `ServiceError` and never build an error body.
 *
 * The time limits are those of the specification: 15 s for receiving a request, 30 s for sending the answer, 60 s for an
 * idle connection. Bun counts them in steps of 4 s. Bun itself also closes a connection whose headers take more than 12 s.
 */
import { type AnyElysia, Elysia } from 'elysia'
import { messageOf, ServiceError, systemCodeOf, UsageError } from './errors.ts'
import type { Guard } from './http-guard.ts'
import { joinedBytes } from './joined-bytes.ts'
import type { Log } from './log.ts'
import { checkQuery, type QueryParameters } from './query-parameters.ts'
import { runCooperatively } from './steps.ts'
import { TRACE_HEADER, TRACE_PARENT_HEADER, traceIdFrom } from './trace.ts'
import type { UnknownFields } from './unknown-names.ts'

export const READ_TIMEOUT_SECONDS = 15
export const WRITE_TIMEOUT_SECONDS = 30
export const IDLE_TIMEOUT_SECONDS = 60

export type ErrorBody = (error: ServiceError) => unknown

export interface HttpServiceOptions {
  readonly log: Log
  /** Checks every request, also of unknown paths. */
  readonly guard: Guard
  /** The body of an error answer in the contract of this service. */
  readonly errorBody: ErrorBody
  /** Limit for `content-length`, also on routes that read no body. */
  readonly maxBodyBytes: number
  /** Whether query parameters that the route does not declare are refused. */
  readonly unknownFields: UnknownFields
}

/** The headers that an Elysia handler sets. Ours always contain the trace id. */
type ResponseSettings = { headers: Record<string, string | number | undefined> }

/** The trace id of the request that `set` belongs to. */
export const traceIdOf = (set: ResponseSettings): string => String(set.headers[TRACE_HEADER])

/** An Elysia app with our limits and errors. Add routes to it, then call `refuseOtherMethods`. */
export function httpService({ log, guard, errorBody, maxBodyBytes, unknownFields }: HttpServiceOptions) {
  const app: AnyElysia = new Elysia({ normalize: false, strictPath: true })
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
      if (hasBody && Number(request.headers.get('content-length')) > maxBodyBytes) throw bodyTooLarge(maxBodyBytes)
    })
    .onBeforeHandle(({ request, route }) => {
      // The server routes by the raw path, but `onRequest` guards the path of a parsed URL, in which `/tasks/..` and
      // `/tasks/..\..` are `/`. If the two differ, the route is guarded, too.
      const [fixedPart = route] = route.split(':', 1)
      if (!pathOf(request).startsWith(fixedPart)) {
        if (isWithoutHost(request)) throw notFound(request)
        guard(request, route)
      }
      if (unknownFields === 'refuse' && request.url.includes('?')) checkQueryOf(app, request, route)
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

/** Refuses query parameters that are not in the `query` schema of the route. The route that answers 405 takes any. */
function checkQueryOf(app: AnyElysia, request: Request, route: string): void {
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const found = app.routes.find((candidate) => candidate.path === route && candidate.method === method)
  if (found === undefined) return
  const { query } = found.hooks as { query?: { properties?: QueryParameters } }
  checkQuery(request.url, query?.properties ?? {})
}

/** Adds a route to each path that answers 405 with `Allow` to the methods without a route. */
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

/**
 * Without a Host, or with an empty one, the server puts the target of a request in place of its URL. Elysia then looks for
 * the path behind the first eleven characters, where it expects a scheme and a host. It finds another route, or no query.
 */
const isWithoutHost = ({ url }: Request): boolean => url.startsWith('/')

/** The URL of a request, also if it came without a Host. */
export const urlOf = (request: Request): string =>
  isWithoutHost(request) ? `http://localhost${request.url}` : request.url

export const pathOf = (request: Request): string => {
  const url = urlOf(request)
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return url.slice(start, end < 0 ? undefined : end)
}

/** The server itself would replace malformed escapes and invalid UTF-8 by other characters. */
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

/**
 * Reads the whole body of a request of `app`. Throws 413 once it has more than `maxBytes`. Then starts the time limit for
 * sending the answer.
 *
 * For routes with `parse: 'none'`: what Elysia does before a custom parser (a stream of the body that nobody reads, a field
 * added to the context and deleted again, a getter for the server) costs 3 µs a request.
 */
export async function readBody(app: AnyElysia, request: Request, maxBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > maxBytes) throw bodyTooLarge(maxBytes)
  const isSmall = declared !== null && Number(declared) < LARGE_BODY_BYTES
  const body = await (isSmall ? request.bytes() : bodyInChunks(request, maxBytes)).catch(notArrived)
  app.server?.timeout(request, WRITE_TIMEOUT_SECONDS)
  return body
}

/** An error while reading a body, other than our own refusal, means that the connection was closed. */
function notArrived(error: unknown): never {
  if (error instanceof ServiceError) throw error
  throw new ServiceError(CALLER_GONE, 'the caller closed the connection before the body had arrived', { cause: error })
}

/** The status of a request whose caller has disconnected. Only the log shows it. */
const CALLER_GONE = 499

/** Bodies from this size on are read in chunks and joined in steps. In one step, 60 MiB would block the event loop for 30 ms. */
const LARGE_BODY_BYTES = 4 * 1024 * 1024

/** Reads a body that is large, or of unknown length. */
async function bodyInChunks(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > maxBytes) throw bodyTooLarge(maxBytes)
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : runCooperatively(joinedBytes(chunks))
}

const bodyTooLarge = (maxBytes: number) =>
  new ServiceError(413, `request body is larger than ${maxBytes} bytes (the limit is --max-body-bytes)`)

export interface ListenAddress {
  readonly hostname: string
  readonly port: number
}

/** Parses `host:port`, `[v6]:port` or `:port` (all interfaces). Port 0 lets the system choose. Throws `UsageError`. */
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
  /** The address, as `http://host:port`. */
  readonly url: string
  /** Refuses new connections. Resolves when all open requests are answered, at the latest after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Throws the `UsageError` of `listen` if the address is not free. */
export function ensureListenable({ hostname, port }: ListenAddress, flag: string): void {
  try {
    Bun.listen({ hostname, port, socket: { data() {} } }).stop(true)
  } catch (error) {
    throw cannotListen({ hostname, port }, flag, error)
  }
}

function cannotListen({ hostname, port }: ListenAddress, flag: string, error: unknown): UsageError {
  const code = systemCodeOf(error) ?? ''
  const reason = code === 'EADDRINUSE' ? 'the address is in use' : (LISTEN_FAULTS[code] ?? messageOf(error))
  return new UsageError(`cannot listen on ${hostname}:${port}: ${reason} (choose another with --${flag})`)
}

/** Starts to listen. Throws `UsageError` with the remedy if the address is not available. */
export function listen(app: AnyElysia, address: ListenAddress, flag: string): RunningHttpService {
  try {
    app.listen({
      hostname: address.hostname,
      port: address.port,
      reusePort: false, // otherwise two services on one port would silently share its requests
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // Our own limit answers with a JSON body. The server's limit would close the connection without an answer.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    })
  } catch (error) {
    throw cannotListen(address, flag, error)
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
