/**
 * Addresses of PostgreSQL servers, as people write them. Pure.
 *
 * An address holds a password, so no error text repeats any part of it that could be one: `shown` is the form for texts.
 * Unknown parameters are refused. Bun would send them to the server as settings.
 */
import { UsageError } from '../../../shared/contract/errors.ts'
import { nearestName } from '../../../shared/text/nearest-name.ts'

/** Modes of `sslmode`, as libpq names them. */
const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof SSL_MODES)[number]

const PARAMETERS = ['sslmode', 'sslrootcert', 'prepare', 'host']

const DEFAULT_PORT = 5432

/** Addresses of one cluster: the primary and its standbys. More are a mistake. */
export const MAX_DATABASE_URLS = 16

export interface DatabaseUrl {
  /** Name or address of the host, or the directory of a Unix socket, which begins with a slash. */
  readonly hostname: string
  readonly port: number
  readonly username: string
  readonly password: string
  readonly database: string
  readonly sslMode: SslMode
  /** File with the certificates of the authorities that the server's certificate must come from. */
  readonly caFile: string | undefined
  /** Named prepared statements. A pooler in transaction mode does not keep them. */
  readonly isPreparing: boolean
  /** The address without its password. */
  readonly shown: string
  /** Host, port and database: `db-1.internal:5432/mill`. */
  readonly place: string
}

/** Reads the addresses of a cluster. Throws `UsageError` without a password in it. `source` names where they are written. */
export function parseDatabaseUrls(texts: readonly string[], source: string): DatabaseUrl[] {
  if (texts.length > MAX_DATABASE_URLS) {
    throw new UsageError(`${source} has ${texts.length} addresses: at most ${MAX_DATABASE_URLS} are allowed`)
  }
  const urls = texts.map((text, i) =>
    parseDatabaseUrl(text, texts.length === 1 ? source : `address ${i + 1} of ${source}`),
  )
  const twice = urls.find(({ shown }, i) => urls.findIndex((other) => other.shown === shown) < i)
  if (twice !== undefined) throw new UsageError(`${source} has ${twice.shown} twice`)
  return urls
}

const FORM = 'postgres://user@host:5432/database'

function parseDatabaseUrl(text: string, what: string): DatabaseUrl {
  const url = URL.parse(text)
  // A raw / ? or # in a password makes its rest a path, and the @ comes behind it.
  const isForm = url !== null && /^postgres(ql)?:$/.test(url.protocol)
  if (!isForm || (url.pathname + url.search + url.hash).includes('@')) {
    throw new UsageError(
      `${what} is not of the form ${FORM} (in names and passwords, write %2F for /, %3F for ?, %40 for @, %25 for %)`,
    )
  }
  if (url.hash !== '') throw new UsageError(`${what} has a # (in a password, write %23)`)
  const parameters = readParameters(url.searchParams, what)
  const socket = parameters.get('host')
  if (socket !== undefined && !socket.startsWith('/')) {
    throw new UsageError(`${what}: host must be the directory of a Unix socket, such as /run/postgresql`)
  }
  const hostname = socket ?? url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (hostname === '') throw new UsageError(`${what} names no host (${FORM})`)
  const username = decoded(url.username, what)
  const database = decoded(url.pathname.replace(/^\//, ''), what)
  if (username === '') throw new UsageError(`${what} names no user (${FORM})`)
  if (database === '' || database.includes('/')) throw new UsageError(`${what} names no database (${FORM})`)
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  const place = `${placeOf(hostname, port)}/${encodeURIComponent(database)}`
  return {
    ...{ hostname, port, username, password: decoded(url.password, what), database },
    sslMode: sslModeOf(parameters, socket !== undefined, what),
    caFile: parameters.get('sslrootcert'),
    isPreparing: switchOf(parameters.get('prepare'), `${what}: prepare`),
    shown: `postgres://${encodeURIComponent(username)}@${place}`,
    place,
  }
}

/** The host and port of an address, or its Unix socket. */
export const placeOf = (hostname: string, port: number): string =>
  hostname.includes(':')
    ? `[${hostname}]:${port}`
    : hostname.startsWith('/')
      ? `${hostname}/.s.PGSQL.${port}`
      : `${hostname}:${port}`

function readParameters(given: URLSearchParams, what: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of given) {
    if (!PARAMETERS.includes(name)) {
      const nearest = nearestName(name, PARAMETERS)
      const known = nearest === undefined ? `known are ${PARAMETERS.join(', ')}` : `did you mean ${nearest}?`
      throw new UsageError(`${what} has the unknown parameter ${JSON.stringify(name)} (${known})`)
    }
    if (parameters.has(name)) throw new UsageError(`${what} has the parameter ${name} twice`)
    if (value === '') throw new UsageError(`${what}: ${name} needs a value`)
    parameters.set(name, value)
  }
  return parameters
}

function sslModeOf(parameters: ReadonlyMap<string, string>, isSocket: boolean, what: string): SslMode {
  const given = parameters.get('sslmode')
  const hasAuthority = parameters.has('sslrootcert')
  if (given === undefined) return hasAuthority ? 'verify-full' : isSocket ? 'disable' : 'prefer'
  if (!(SSL_MODES as readonly string[]).includes(given)) {
    throw new UsageError(`${what}: sslmode must be ${SSL_MODES.join(', ').replace(/, (?=[^,]*$)/, ' or ')}`)
  }
  if (hasAuthority && !given.startsWith('verify-')) {
    throw new UsageError(`${what}: sslrootcert has no effect with sslmode=${given} (use verify-full)`)
  }
  return given as SslMode
}

function switchOf(given: string | undefined, what: string): boolean {
  if (given === undefined || given === 'true') return true
  if (given === 'false') return false
  throw new UsageError(`${what} must be true or false`)
}

function decoded(part: string, what: string): string {
  let text: string
  try {
    text = decodeURIComponent(part)
  } catch {
    throw new UsageError(`${what} has a % that begins no character (write %25 for %)`)
  }
  if (text.includes('\0')) throw new UsageError(`${what} has a zero byte, which PostgreSQL does not accept`)
  return text
}
