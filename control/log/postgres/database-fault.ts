/**
 * What the database could not do, by kind. Pure.
 *
 * Bun puts the SQLSTATE into `errno`, and a code of its own into `code`. It has no SQLSTATE when the connection failed.
 */
import { messageOf } from '../../../shared/contract/errors.ts'

export type FaultKind =
  /** No connection, or it broke: the server is down, starting or ending, or the network is cut. */
  | 'away'
  /** No answer in time. */
  | 'silent'
  /** Too many queries of this process hang there, so that it sends no further one. */
  | 'stranded'
  /** It refuses writes: a standby. */
  | 'read-only'
  | 'wrong-password'
  /** Neither user nor host may connect, or the user may not do this. */
  | 'not-allowed'
  | 'no-database'
  | 'no-tls'
  /** The server's certificate is not accepted. */
  | 'untrusted'
  | 'too-many-connections'
  /** Disk or memory of the server is full. */
  | 'full'
  /** A unique key is in use. Nothing was written. */
  | 'in-use'
  /** It lost against another transaction, or waited too long for a lock. Nothing was written. */
  | 'contended'
  /** Schema or table is missing. */
  | 'no-schema'
  /** A pooler in transaction mode lost a prepared statement, or refused a setting of the session. */
  | 'pooler'
  | 'other'

export class DatabaseFault extends Error {
  override name = 'DatabaseFault'
  /** The server that no connection came about to: `db-1.internal:5432/mill`. */
  place: string | undefined
  constructor(
    readonly kind: FaultKind,
    message: string,
    readonly sqlState: string | undefined,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }

  /** Nobody knows whether the statement was committed. */
  get isAmbiguous(): boolean {
    return this.kind === 'away' || this.kind === 'silent'
  }
}

/** What a fault says of the database, for people. */
const WORDS: Readonly<Partial<Record<FaultKind, string>>> = {
  away: 'the database is not reached',
  stranded: 'the database leaves queries without an answer',
  'read-only': 'the database takes no writes',
  'wrong-password': 'the database refuses the password',
  'not-allowed': 'the database does not allow this',
  'no-database': 'the database does not exist',
  'too-many-connections': 'the database has no connection left',
  full: 'the database is full',
  contended: 'the database waits for a lock that somebody holds',
}

/** `the database is full: could not extend file ...`. Undefined for one that says nothing, which is silent. */
export const wordsOf = ({ kind, message }: DatabaseFault): string | undefined =>
  kind === 'silent' ? undefined : `${WORDS[kind] ?? 'the database refuses this'}: ${message}`

const BY_STATE: Readonly<Record<string, FaultKind>> = {
  '25006': 'read-only',
  '28P01': 'wrong-password',
  '28000': 'not-allowed',
  '42501': 'not-allowed',
  '3D000': 'no-database',
  '53300': 'too-many-connections',
  '53100': 'full',
  '53200': 'full',
  '53400': 'full',
  '23505': 'in-use',
  '40001': 'contended',
  '40P01': 'contended',
  '55P03': 'contended',
  '42P01': 'no-schema',
  '3F000': 'no-schema',
  '42P05': 'pooler',
  '26000': 'pooler',
}

/** By the first two characters of the SQLSTATE: connection exceptions, and the server starting, ending or crashed. */
const BY_CLASS: Readonly<Record<string, FaultKind>> = { '08': 'away', '57': 'away', '58': 'away', XX: 'away' }

/** PostgreSQL ended the statement on request (57014): its connection is fine, and nothing was written. */
const CANCELED = '57014'

const BY_CODE: Readonly<Record<string, FaultKind>> = {
  ERR_POSTGRES_CONNECTION_CLOSED: 'away',
  ERR_POSTGRES_CONNECTION_REFUSED: 'away',
  ERR_POSTGRES_CONNECTION_FAILED: 'away',
  ERR_POSTGRES_CONNECTION_TIMEOUT: 'silent',
  ERR_POSTGRES_IDLE_TIMEOUT: 'away',
  ERR_POSTGRES_LIFETIME_TIMEOUT: 'away',
  ERR_POSTGRES_TLS_NOT_AVAILABLE: 'no-tls',
  ERR_POSTGRES_TLS_UPGRADE_FAILED: 'no-tls',
}

/** Codes of OpenSSL and Bun for certificates. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER|ALTNAME/

/** The fault of anything that a query threw. */
export function databaseFault(thrown: unknown): DatabaseFault {
  if (thrown instanceof DatabaseFault) return thrown
  const { code, errno } = (thrown ?? {}) as { code?: unknown; errno?: unknown }
  const sqlState = typeof errno === 'string' ? errno : undefined
  return new DatabaseFault(kindOf(String(code), sqlState), messageOf(thrown), sqlState, { cause: thrown })
}

function kindOf(code: string, sqlState: string | undefined): FaultKind {
  if (sqlState !== undefined) {
    if (sqlState === CANCELED) return 'contended'
    return BY_STATE[sqlState] ?? BY_CLASS[sqlState.slice(0, 2)] ?? 'other'
  }
  return BY_CODE[code] ?? (CERTIFICATE.test(code) ? 'untrusted' : 'other')
}

/** No answer within `timeoutMs` milliseconds. */
export const silentFault = (timeoutMs: number): DatabaseFault =>
  new DatabaseFault('silent', `no answer within ${timeoutMs} ms`, undefined)
