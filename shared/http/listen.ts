/** Where a service listens: an address and a port, or a Unix socket. Starts its app there, and stops it gracefully. */
import type { AnyElysia } from 'elysia'
import { messageOf, systemCodeOf, UsageError } from '../contract/errors.ts'
import { ensureSocketPlace, privately } from '../files/socket-file.ts'
import { routesInOnePass } from './routes.ts'
import { socketPathOf, socketUrl } from './socket-address.ts'
import { IDLE_TIMEOUT_SECONDS } from './time-limits.ts'

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
