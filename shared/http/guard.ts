/**
 * Which requests a service accepts. Pure. `http-service.ts` asks it for every request on every route.
 *
 * Access is open on loopback, so the danger is a web page in the user's browser. A page can send requests to any address
 * and, if its own name resolves to 127.0.0.1 (DNS rebinding), even read the answers. But it cannot choose `Host`, `Origin`
 * and `Sec-Fetch-Site`. So the `Host` of a request has to be a name that no stranger can own, and its `Origin` the same
 * host. If there are tokens, all requests need one except probes, page shells and their assets. A request with a token passes
 * all checks, and probes and assets need none. What the caller may do is asked where the route is known (`service.ts`).
 *
 * In place of a token, the page sends the cookie of a session. Browsers send cookies on their own, so what changes something
 * has to come from the page: its `Origin` is the host of the service, or the browser says so in `Sec-Fetch-Site`, also where a
 * proxy rewrites `Host`. Programs send tokens: a cookie opens neither the endpoint of MCP, nor the adapter, nor further sessions.
 */
import { ServiceError } from '../contract/errors.ts'
import { Expected, list, type Setting } from '../settings/flags.ts'
import { type Identity, PassedOnCallers, setCaller, setSession } from './callers.ts'
import type { KnownTokens } from './known-tokens.ts'
import { sessionCookieIn } from './session-cookie.ts'
import type { Sessions } from './sessions.ts'

export interface GuardOptions {
  /** The token of the service, whose callers may do everything. */
  readonly token: string | undefined
  /** The tokens of callers with names. Without these and without `token`, access is open. */
  readonly tokens?: Pick<KnownTokens, 'callerWith'> | undefined
  /** Sessions of browsers, which need no token. */
  readonly sessions?: Pick<Sessions, 'find'> | undefined
  /** Whether other replicas pass requests on, with `token`. */
  readonly hasReplicas?: boolean
  /** Path of the token file, for the 401 answer. Undefined: the answer does not name it. */
  readonly tokenFile?: string | undefined
  /** Further names that `Host` and `Origin` may have. */
  readonly allowedHosts: readonly string[]
  /** The name or address that the service listens on. */
  readonly listeningHost: string
}

/** A name or an address, with or without a port. */
const HOST = /^(?:[\w-][\w.-]*(?::\d{1,5})?|\[[\da-f:.]+\](?::\d{1,5})?|[\da-f]*:[\da-f:.]*:[\da-f.]*)$/i

/** The setting of `allowedHosts`. Refuses values that no `Host` can have. */
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

/** Liveness and readiness probes. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/healthz', '/readyz'])

/** Scripts and style sheets of the pages. They are the same for everybody. */
const ASSETS = '/assets/'

/**
 * Whether `path` is served without any check. Browsers send `Origin` with module scripts, and behind a proxy that rewrites
 * `Host` the two differ.
 */
const isPublic = (path: string): boolean => PROBES.has(path) || path.startsWith(ASSETS)

/** Paths without a token: pages without data. */
const PAGE_SHELLS: ReadonlySet<string> = new Set(['/', '/docs', '/openapi.json'])

/** Whether `path` needs no token where the others do. */
export const isWithoutToken = (path: string): boolean => isPublic(path) || PAGE_SHELLS.has(path)

/** The path at which browsers sign in, with POST. */
export const SESSION_PATH = '/session'

/** A link to sign in would outlive the session that made it. */
const isForPrograms = (path: string): boolean => /^\/(?:mcp|adapters|session\/links)(?:\/|$)/.test(path)

/** Names outside the public DNS, which no web page can have. */
const LOCAL_SUFFIXES = ['.local', '.localhost', '.internal', '.svc']

export type Guard = (request: Request, path: string) => void

/** Whose a token is; undefined for one that is not good. */
export type Identify = (token: string) => Identity | undefined

/** Undefined without tokens. */
export function identifier({ token, tokens }: Pick<GuardOptions, 'token' | 'tokens'>): Identify | undefined {
  if (token === undefined && tokens === undefined) return undefined
  const digest = token === undefined ? undefined : digestOf(token)
  return (given) => {
    if (digest !== undefined && crypto.timingSafeEqual(digestOf(given), digest)) return { caller: undefined }
    const caller = tokens?.callerWith(given)
    return caller && { caller }
  }
}

/** The check of a request. It throws 401 or 403, with the remedy. */
export function createGuard(options: GuardOptions): Guard {
  const { tokens, sessions, tokenFile, hasReplicas = false, allowedHosts, listeningHost } = options
  const whereToken = tokenFile === undefined ? '' : ` (the token is in ${tokenFile})`
  const allowed = new Set(allowedHosts.map((name) => plainName(hostOf(name))))
  const own = plainName(hostOf(listeningHost))
  const isAllowed = (name: string): boolean => allowed.has(name) || name === own || isLocalName(name)

  const identify = identifier(options)
  const passedOn = hasReplicas ? new PassedOnCallers() : undefined

  /** Whether the token is good. Notes the caller with a name. */
  const isKnown = (given: string, request: Request): boolean => {
    const identity = identify?.(given)
    if (identity === undefined) return false
    const caller = identity.caller ?? passedOn?.callerIn(request.headers)
    if (caller !== undefined) setCaller(request, caller)
    return true
  }

  /** Whether a request with a cookie has a session. Notes it. Throws 403 for a change that may be of another web site. */
  const isSignedIn = (request: Request, path: string): boolean => {
    if (sessions === undefined || isForPrograms(path)) return false
    const session = sessions.find(sessionCookieIn(request.headers))
    if (session === undefined) return false
    if (!isReading(request) && !isOfOwnPage(request.headers))
      throw new ServiceError(403, 'with a session, changes are allowed to the page of this service only (use a token)')
    setSession(request, session)
    return true
  }

  /** Whether the page of this service sends the request. Other web sites can forge neither header. */
  const isOfOwnPage = (headers: Headers): boolean => {
    const origin = headers.get('origin')
    const isOwn = origin !== null && (isSameOrigin(origin, headers.get('host')) || isAllowedOrigin(origin))
    return isOwn || headers.get('sec-fetch-site') === 'same-origin'
  }

  const isAllowedOrigin = (origin: string): boolean => allowed.has(plainName(hostOf(withoutScheme(origin))))

  /** The last allowed `Host`, mostly that of the next request, too. The full check takes 1 µs. */
  let lastHost: string | undefined

  return (request, path) => {
    if (isPublic(path)) return
    const { headers } = request
    if (identify !== undefined) {
      const given = bearerIn(headers.get('authorization'))
      if (given === undefined ? isSignedIn(request, path) : isKnown(given, request)) return
      const isSignIn = sessions !== undefined && path === SESSION_PATH && request.method === 'POST'
      if (isSignIn && isOfOwnPage(headers)) return
      if (!PAGE_SHELLS.has(path) && !isSignIn) {
        const fault =
          given === undefined
            ? 'a token is needed: send Authorization: Bearer <token>'
            : tokens === undefined
              ? 'the token is wrong'
              : 'the token is wrong, revoked or expired'
        throw new ServiceError(401, `${fault}${whereToken}`, {
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
    if (origin !== null && !isSameOrigin(origin, host) && !isAllowedOrigin(origin)) {
      throw new ServiceError(403, `origin ${origin} is not allowed (allow it with --allowed-host, or use a token)`)
    }
    const isNavigation = request.method === 'GET' && headers.get('sec-fetch-mode') === 'navigate'
    if (headers.get('sec-fetch-site') === 'cross-site' && !isNavigation) {
      throw new ServiceError(403, 'requests of other web sites are not allowed (use a token)')
    }
  }
}

/** Whether a service listening on `host` is reachable from this machine only. */
export const isLoopback = (host: string): boolean => {
  const name = plainName(host)
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
}

function isLocalName(name: string): boolean {
  if (isAddress(name) || !name.includes('.')) return true
  return LOCAL_SUFFIXES.some((suffix) => name.endsWith(suffix))
}

const isAddress = (name: string): boolean => name.includes(':') || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)

/** The host of `host`, `host:port`, `[v6]:port`, `[v6]` or a bare IPv6 address, without brackets. */
function hostOf(authority: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(authority)
  if (bracketed !== null) return bracketed[1]!
  return authority.split(':').length > 2 ? authority : authority.replace(/:\d*$/, '')
}

/** The name in lower case, without the final dot of an absolute name. */
const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '')

const withoutScheme = (origin: string): string => origin.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')

/** Whether `origin` has the name and port of `host`. The scheme does not matter: a proxy may have taken TLS off. */
function isSameOrigin(origin: string, host: string | null): boolean {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(origin)?.[1]?.toLowerCase()
  if (host === null || scheme === undefined) return false
  const given = withPort(host)
  const own = withPort(withoutScheme(origin))
  // Browsers leave the default port out of both. Some proxies write it into the Host.
  return given === own || (own.endsWith(':') && given === own + DEFAULT_PORTS[scheme])
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** The authority in one form. A missing port stays missing. */
const withPort = (authority: string): string => {
  const port = /:(\d+)$/.exec(authority.includes(']') ? authority.slice(authority.indexOf(']')) : authority)?.[1]
  return `${plainName(hostOf(authority))}:${port ?? ''}`
}

const isReading = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD'

/** The token in the header `Authorization`. */
export const bearerIn = (authorization: string | null): string | undefined =>
  /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]

/** Digests are compared in constant time. */
const digestOf = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest()
