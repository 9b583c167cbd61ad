/**
 * Who may speak to a service of ours. Pure; `http-service.ts` asks it for every request, whatever the route.
 *
 * Access is open on loopback, so the danger is a web page in the user's browser. A page can send requests to any address
 * and, by letting its own name point to 127.0.0.1 (DNS rebinding), even read the answers; but it cannot choose `Host`,
 * `Origin` and `Sec-Fetch-Site`. So a request must name a host that no stranger can own, and a browser must say that the
 * request comes from that same host. Where a token is set it is needed for everything but probes and page shells, and
 * whoever has it need not pass the rest.
 */
import { ServiceError } from './errors.ts'
import { Expected, list, type Setting } from './flags.ts'

export interface GuardOptions {
  /** The token that callers must show; undefined for open access. */
  readonly token: string | undefined
  /** Where callers of this machine find the token, as a path; undefined where nobody is told. */
  readonly tokenFile?: string | undefined
  /** Names that `Host` and `Origin` may have besides those that are always allowed. */
  readonly allowedHosts: readonly string[]
  /** The name or address that the service listens on. */
  readonly listeningHost: string
}

/** A name or an address, maybe with a port, which does not count. */
const HOST = /^(?:[\w-][\w.-]*(?::\d{1,5})?|\[[\da-f:.]+\](?::\d{1,5})?|[\da-f]*:[\da-f:.]*:[\da-f.]*)$/i

/** `allowedHosts` as a flag: what no `Host` could ever be is a mistake. */
export function hostNames(setting: Parameters<typeof list>[0]): Setting<readonly string[]> {
  const names = list(setting)
  return {
    ...names,
    parse(text) {
      const given = names.parse(text)
      if (given instanceof Expected || given.every((name) => HOST.test(name))) return given
      return new Expected('names of hosts, without a scheme or a path, such as build.example.com')
    },
  }
}

/** Paths that are answered without a token and whatever the headers: liveness and readiness. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/healthz', '/readyz'])

/** Paths that need no token: they hold nothing of anybody. */
const PAGE_SHELLS: ReadonlySet<string> = new Set(['/', '/docs', '/openapi.json'])

/** Names that cannot belong to a web page: they are not in the public name system. */
const LOCAL_SUFFIXES = ['.local', '.localhost', '.internal', '.svc']

export type Guard = (request: Request, path: string) => void

/** Makes the check: it throws 401 or 403, with the remedy. */
export function createGuard({ token, tokenFile, allowedHosts, listeningHost }: GuardOptions): Guard {
  const whereToken = tokenFile === undefined ? '' : ` (the token is in ${tokenFile})`
  const allowed = new Set(allowedHosts.map((name) => plainName(hostOf(name))))
  const own = plainName(hostOf(listeningHost))
  const isAllowed = (name: string): boolean => allowed.has(name) || name === own || isLocalName(name)

  /** The last one that was found to be allowed: mostly the next one, too. To find out takes 1 µs. */
  let lastHost: string | undefined

  return (request, path) => {
    if (PROBES.has(path)) return
    const { headers } = request
    if (token !== undefined) {
      if (isBearerOf(headers.get('authorization'), token)) return
      if (!PAGE_SHELLS.has(path)) {
        throw new ServiceError(401, `a token is needed: send Authorization: Bearer <token>${whereToken}`, {
          headers: { 'www-authenticate': 'Bearer' },
        })
      }
    }
    const host = headers.get('host')
    if (host !== lastHost && host !== null && host !== '') {
      if (!isAllowed(plainName(hostOf(host)))) {
        throw new ServiceError(403, `host ${host} is not allowed (allow it with --allowed-host, or use a token)`)
      }
      lastHost = host
    }
    const origin = headers.get('origin')
    if (origin !== null && !isSameOrigin(origin, host) && !allowed.has(plainName(hostOf(withoutScheme(origin))))) {
      throw new ServiceError(403, `origin ${origin} is not allowed (allow it with --allowed-host, or use a token)`)
    }
    const isNavigation = request.method === 'GET' && headers.get('sec-fetch-mode') === 'navigate'
    if (headers.get('sec-fetch-site') === 'cross-site' && !isNavigation) {
      throw new ServiceError(403, 'requests of other web sites are not allowed (use a token)')
    }
  }
}

/** Whether what is listened on can be reached from this machine alone. */
export const isLoopback = (host: string): boolean => {
  const name = plainName(host)
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
}

function isLocalName(name: string): boolean {
  if (isAddress(name) || !name.includes('.')) return true
  return LOCAL_SUFFIXES.some((suffix) => name.endsWith(suffix))
}

const isAddress = (name: string): boolean => name.includes(':') || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)

/** `host`, `host:port`, `[v6]:port`, `[v6]` without the port; brackets stay off. A bare v6 address is itself. */
function hostOf(authority: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(authority)
  if (bracketed !== null) return bracketed[1]!
  return authority.split(':').length > 2 ? authority : authority.replace(/:\d*$/, '')
}

/** Lower case and without the dot that ends an absolute name. */
const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '')

const withoutScheme = (origin: string): string => origin.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')

/** Whether a page of `origin` comes from `host`: the same name and port, whatever the scheme. */
function isSameOrigin(origin: string, host: string | null): boolean {
  return host !== null && /^[a-z][a-z0-9+.-]*:\/\//i.test(origin) && withPort(withoutScheme(origin)) === withPort(host)
}

/** The authority in one form; a missing port stays missing, as each scheme has another one. */
const withPort = (authority: string): string => {
  const port = /:(\d+)$/.exec(authority.includes(']') ? authority.slice(authority.indexOf(']')) : authority)?.[1]
  return `${plainName(hostOf(authority))}:${port ?? ''}`
}

/** Takes the same time wherever a wrong token differs. */
function isBearerOf(authorization: string | null, token: string): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  if (given === undefined) return false
  const digest = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest()
  return crypto.timingSafeEqual(digest(given), digest(token))
}
