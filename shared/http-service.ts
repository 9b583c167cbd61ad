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
import { routesInOnePass } from './http-routes.ts'
import { joinedBytes } from './joined-bytes.ts'
import type { Log } from './log.ts'
import { QuerySchemas } from './query-schemas.ts'
import { socketPathOf, socketUrl } from './socket-address.ts'
import { ensureSocketPlace, privately } from './socket-file.ts'
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
  /** Whether the route of this path limits its body itself. Default: none does. */
  readonly limitsItsBody?: (path: string) => boolean
  /** Whether query parameters that the route does not declare are refused. */
  readonly unknownFields: UnknownFields
}

/** The headers that an Elysia handler sets. Ours always contain the trace id. */
type ResponseSettings = { headers: Record<string, string | number | undefined> }

/** The trace id of the request that `set` belongs to. */
export const traceIdOf = (set: ResponseSettings): string => String(set.headers[TRACE_HEADER])

/** An Elysia app with our limits and errors. Add routes to it, then call `refuseOtherMethods`. */
export function httpService(options: HttpServiceOptions) {
  const { log, guard, errorBody, maxBodyBytes, unknownFields, limitsItsBody = () => false } = options
  const app: AnyElysia = new Elysia({ normalize: false, strictPath: true })
  const queries = new QuerySchemas(app)
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
    .onBeforeHandle(({ request, route }) => {
      // The server routes by the raw path, but `onRequest` guards the path of a parsed URL, in which `/tasks/..` and
      // `/tasks/..\..` are `/`. If the two differ, the route is guarded, too.
      if (!pathOf(request).startsWith(fixedPartOf(route))) {
        if (isWithoutHost(request)) throw notFound(request)
        guard(request, route)
      }
      if (unknownFields === 'refuse' && request.url.includes('?')) queries.check(request, route)
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

/** The last URL and its path: a request is asked for its path several times. */
let lastUrl = ''
let lastPath = ''

export function pathOf(request: Request): string {
  const url = urlOf(request)
  if (url === lastUrl) return lastPath
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  lastUrl = url
  lastPath = url.slice(start, end < 0 ? undefined : end)
  return lastPath
}

/** The path of a route up to its first parameter. */
function fixedPartOf(route: string): string {
  const end = route.indexOf(':')
  return end < 0 ? route : route.slice(0, end)
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

/**
 * The body of a request of `app` in chunks, for a route that keeps none of it in memory. `isAlive` starts the time limit for
 * the next chunk: the server itself does not see that a body goes on.
 */
export function bodyChunks(app: AnyElysia, request: Request) {
  const isAlive = () => app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
  const chunks = async function* (): AsyncGenerator<Uint8Array, void, void> {
    isAlive()
    try {
      if (request.body !== null) yield* request.body
    } catch (error) {
      notArrived(error)
    }
  }
  return { chunks: chunks(), isAlive }
}

/** An error while reading a body, other than our own refusal, means that the connection was closed. */
function notArrived(error: unknown): never {
  if (error instanceof ServiceError) throw error
  throw new ServiceError(CALLER_GONE, 'the caller closed the connection before the body had arrived', { cause: error })
}

/** For work that nobody waits for any more. */
export const callerLeftError = () => new ServiceError(CALLER_GONE, 'the caller closed the connection')

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

/** The path of a Unix socket stands beside `localhost` and port 0. */
export interface ListenAddress {
  readonly hostname: string
  readonly port: number
  readonly socketPath?: string
}

/**
 * Parses `host:port`, `[v6]:port`, `:port` (all interfaces) or `unix:/path`. Port 0 lets the system choose. Throws
 * `UsageError`.
 */
export function parseListenAddress(text: string, setting: string): ListenAddress {
  const socketPath = socketPathOf(text)
  if (socketPath !== undefined) return { hostname: 'localhost', port: 0, socketPath }
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) {
    throw new UsageError(
      `invalid value "${text}" for ${setting}: expected host:port, such as 127.0.0.1:8080, or unix:/path`,
    )
  }
  return { hostname: match[1] || match[2] || '0.0.0.0', port }
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied, as for ports below 1024',
  EADDRNOTAVAIL: 'this machine has no such address',
}

export interface RunningHttpService {
  /** The address, as `http://host:port` or `unix:/path`. */
  readonly url: string
  /** Undefined for a Unix socket. */
  readonly port: number | undefined
  /** Refuses new connections. Resolves when all open requests are answered, at the latest after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Throws the `UsageError` of `listen` if the address is not free. */
export async function ensureListenable(address: ListenAddress, flag: string): Promise<void> {
  const { hostname, port, socketPath } = address
  if (socketPath !== undefined) return ensureSocketPlace(socketPath, flag)
  try {
    Bun.listen({ hostname, port, socket: { data() {} } }).stop(true)
  } catch (error) {
    throw cannotListen(address, flag, error)
  }
}

function cannotListen({ hostname, port, socketPath }: ListenAddress, flag: string, error: unknown): UsageError {
  const code = systemCodeOf(error) ?? ''
  const reason = code === 'EADDRINUSE' ? 'the address is in use' : (LISTEN_FAULTS[code] ?? messageOf(error))
  const where = socketPath ?? `${hostname}:${port}`
  return new UsageError(`cannot listen on ${where}: ${reason} (choose another with --${flag})`)
}

/** Where `Bun.serve` listens. Two services on one port would otherwise silently share its requests. */
export const listenOptions = ({ hostname, port, socketPath }: ListenAddress) =>
  socketPath === undefined ? { hostname, port, reusePort: false } : { unix: socketPath }

/**
 * In place of Elysia's promise for plugins that load later. Once it resolves, Elysia compiles and maps all routes a second
 * time and reloads the server: 1.5 ms of CPU time of a start. We have no such plugins.
 */
const NEVER_LOADED = { value: new Promise(() => {}) }

/**
 * Has Elysia compose its handler of requests without a route of the server, which are 404, 405 and wildcards, with the
 * first of them. `listen` would do so at once and collect garbage after it.
 */
function composeLater(app: AnyElysia): void {
  Object.defineProperty(app, 'compile', { value: () => app })
  const fetch = (request: Request) => {
    if (app.fetch === fetch) Reflect.deleteProperty(app, 'fetch') // the getter of the class composes
    return app.fetch(request)
  }
  Object.defineProperty(app, 'fetch', { value: fetch, configurable: true, writable: true })
}

/** Addresses that a URL has as they are written. */
const PLAIN_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0', 'localhost'])

/** Without a slash at the end. `server.url` makes the first URL of the process, which takes 1.3 ms of a start. */
function urlOfServer(server: NonNullable<AnyElysia['server']>): string {
  const { hostname, port } = server
  if (PLAIN_HOSTS.has(hostname!) && port !== 80) return `http://${hostname}:${port}`
  return server.url.href.replace(/\/$/, '')
}

/**
 * Starts to listen. Throws `UsageError` with the remedy if the address is not available.
 *
 * `Bun.serve` asks for a collection of garbage, which takes 7 of the 44 ms of CPU time of a start of control. A server that
 * is made before the modules are loaded, and gets its routes by `reload` in the end, collects next to nothing. But it
 * accepts connections before the data directory is known to be free and readable.
 */
export function listen(app: AnyElysia, address: ListenAddress, flag: string): RunningHttpService {
  const { socketPath } = address
  Object.defineProperty(app, 'promisedModules', NEVER_LOADED)
  app.config.serve = { ...app.config.serve, routes: routesInOnePass(app) }
  composeLater(app)
  const bind = () =>
    app.listen({
      ...(listenOptions(address) as object), // Elysia knows no sockets, but passes the option on
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // Our own limit answers with a JSON body. The server's limit would close the connection without an answer.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    })
  try {
    if (socketPath === undefined) bind()
    else privately(bind)
  } catch (error) {
    throw cannotListen(address, flag, error)
  }
  Bun.unsafe.setJITPolicy(1) // until now START_JIT_POLICY of scripts/build.ts
  const server = app.server!
  return {
    url: socketPath === undefined ? urlOfServer(server) : socketUrl(socketPath),
    port: server.port,
    async stop(graceMs) {
      const closed = server.stop(false)
      const late = new Promise<'late'>((resolve) => setTimeout(resolve, graceMs, 'late').unref())
      if ((await Promise.race([closed, late])) === 'late') await server.stop(true)
    },
  }
}
