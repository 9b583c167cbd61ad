/**
 * Where a service listens: an address and a port, or a Unix socket. Until `serve-app.ts` gives it the routes of an app, requests
 * wait for it.
 *
 * Services listen early. A caller need not ask again and again, and the start is faster: `Bun.serve` asks for a collection of
 * garbage, which takes 4 of 31 ms of CPU time once the modules of control are loaded, and next to nothing before.
 */
import { messageOf, systemCodeOf, UsageError } from '../contract/errors.ts'
import { ensureSocketPlace, privately } from '../files/socket-file.ts'
import type { StartProgress } from '../process/start-progress.ts'
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

type Answer = (request: Request) => Response | Promise<Response>

export interface HttpServer {
  /** The address, as `http://host:port` or `unix:/path`. */
  readonly url: string
  /** Undefined for a Unix socket. */
  readonly port: number | undefined
  readonly server: ReturnType<typeof Bun.serve>
  /** Answers the requests that wait for the start. */
  readonly release: (answer: Answer) => void
  /** Refuses new connections. Resolves when all open requests are answered, at the latest after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

function cannotListen({ hostname, port, socketPath }: ListenAddress, flag: string, error: unknown): UsageError {
  const code = systemCodeOf(error) ?? ''
  const reason = code === 'EADDRINUSE' ? 'the address is in use' : (LISTEN_FAULTS[code] ?? messageOf(error))
  const where = socketPath ?? `${hostname}:${port}`
  return new UsageError(`cannot listen on ${where}: ${reason} (choose another with --${flag})`)
}

/** Milliseconds that a request waits for the end of the start. Most starts take a hundredth of it: nobody sees a 503 of them. */
export const START_PATIENCE_MS = 1_000

/** Seconds after which a caller may ask a service that starts again. */
const RETRY_AFTER_SECONDS = 1

interface Start {
  readonly started: Promise<Answer>
  readonly progress: StartProgress | undefined
  readonly patienceMs: number | undefined
}

async function answerOfStart(request: Request, { started, progress, patienceMs }: Start): Promise<Response> {
  const answer = await (patienceMs === undefined ? started : Promise.race([started, Bun.sleep(patienceMs)]))
  if (answer !== undefined) return answer(request)
  const headers = { 'retry-after': String(RETRY_AFTER_SECONDS) }
  return Response.json({ error: 'starting', ...progress }, { status: 503, headers })
}

function bind({ hostname, port, socketPath }: ListenAddress, fetch: Answer): HttpServer['server'] {
  const options = {
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    // Our own limit answers with a JSON body. The server's limit would close the connection without an answer.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch,
  }
  // Two services on one port would otherwise silently share its requests.
  if (socketPath === undefined) return Bun.serve({ ...options, hostname, port, reusePort: false })
  const onSocket: object = { ...options, unix: socketPath } // its type has no idle timeout, which sockets have
  return privately(() => Bun.serve(onSocket as Bun.Serve.Options<undefined>))
}

/** Addresses that a URL has as they are written. */
const PLAIN_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0', 'localhost'])

/** Without a slash at the end. `server.url` makes the first URL of the process, which takes 1.3 ms of a start. */
function urlOfServer(server: HttpServer['server']): string {
  const { hostname, port } = server
  if (PLAIN_HOSTS.has(hostname!) && port !== 80) return `http://${hostname}:${port}`
  return server.url.href.replace(/\/$/, '')
}

/**
 * Starts to listen. Requests that have waited for `patienceMs` get 503 with the `progress`; undefined: they wait for the end of the
 * start. Throws `UsageError` with the remedy if the address, which `flag` sets, is not available.
 */
export async function listen(
  address: ListenAddress,
  flag: string,
  patienceMs?: number,
  progress?: StartProgress,
): Promise<HttpServer> {
  const { socketPath } = address
  if (socketPath !== undefined) await ensureSocketPlace(socketPath, flag)
  const { promise: started, resolve: release } = Promise.withResolvers<Answer>()
  let server: HttpServer['server']
  try {
    server = bind(address, (request) => answerOfStart(request, { started, progress, patienceMs }))
  } catch (error) {
    throw cannotListen(address, flag, error)
  }
  return {
    url: socketPath === undefined ? urlOfServer(server) : socketUrl(socketPath),
    port: server.port,
    server,
    release,
    async stop(graceMs) {
      const closed = server.stop(false)
      const late = new Promise<'late'>((resolve) => setTimeout(resolve, graceMs, 'late').unref())
      if ((await Promise.race([closed, late])) === 'late') await server.stop(true)
    },
  }
}
