/**
 * What is wrong with the servers of a database, and how to mend it. Pure.
 *
 * An error makes accepted work unsafe or taskmill unable to work. A warning is a choice that somebody may have made.
 */
import { isLoopback } from '../../../shared/http/guard.ts'
import type { DatabaseFacts } from './database-facts.ts'
import type { DatabaseFault, FaultKind } from './database-fault.ts'
import type { DatabaseUrl } from './database-url.ts'
import { SCHEMA } from './schema-name.ts'
import { SCHEMA_VERSION } from './shared-schema.ts'

export interface Finding {
  readonly code: string
  readonly severity: 'error' | 'warning'
  /** The server's address without its password. Absent if the finding is about all of them. */
  readonly server?: string
  readonly message: string
  readonly remedy: string
}

export interface Looked {
  readonly url: DatabaseUrl
  /** What the server told, or why it told nothing. */
  readonly facts: DatabaseFacts | DatabaseFault
}

/** PostgreSQL 13. Older versions are without security updates since 2025. */
const MIN_VERSION_NUMBER = 130_000

/** Connections that a replica may open. */
export const CONNECTIONS_PER_REPLICA = 8

interface Answered {
  readonly url: DatabaseUrl
  readonly facts: DatabaseFacts
}

export function findingsOf(looked: readonly Looked[]): Finding[] {
  const answered = looked.filter((one): one is Answered => !(one.facts instanceof Error))
  return [
    ...looked.flatMap(({ url, facts }) => {
      const found = facts instanceof Error ? [unreached(url, facts)] : ofServer(url, facts)
      return found.map((finding) => ({ ...finding, server: url.shown }))
    }),
    ...ofAll(answered, looked.length),
  ]
}

type Found = Omit<Finding, 'server'>

const error = (code: string, message: string, remedy: string): Found => ({ code, severity: 'error', message, remedy })
const warning = (code: string, message: string, remedy: string): Found => ({
  ...{ code, severity: 'warning', message, remedy },
})

export const openFileFinding = (path: string): Finding =>
  warning('open_file', `other users have rights to ${path}, which has a password`, `chmod 600 ${path}`)

/** Code and remedy of each kind of fault that a first look may end with. */
const UNREACHED: Readonly<Partial<Record<FaultKind, readonly [code: string, remedy: (url: DatabaseUrl) => string]>>> = {
  away: ['unreachable', () => 'start PostgreSQL, let it listen there (listen_addresses), or correct the address'],
  silent: [
    'no_answer',
    () => 'look for a firewall that drops packets, or a server that hangs; --timeout gives it more time',
  ],
  'wrong-password': [
    'wrong_password',
    ({ username }) => `correct the password, or set one: alter role ${quoted(username)} password '...'`,
  ],
  'not-allowed': [
    'not_allowed',
    ({ username, database }) =>
      `allow the connection in pg_hba.conf, and: grant connect on database ${quoted(database)} to ${quoted(username)}`,
  ],
  'no-database': [
    'no_database',
    ({ username, database }) => `create database ${quoted(database)} owner ${quoted(username)}`,
  ],
  'no-tls': ['no_tls', () => 'turn TLS on in the server (ssl = on), or ask for less with sslmode=prefer'],
  untrusted: [
    'untrusted_certificate',
    () => "name the authority's certificates with sslrootcert=FILE, and the host as the server's certificate does",
  ],
  contended: ['statement_timeout', ({ username, database }) => withoutTimeout(quoted(username), quoted(database))],
  'too-many-connections': ['no_connection_left', () => 'raise max_connections, or end connections that nobody needs'],
}

const withoutTimeout = (user: string, database: string): string =>
  `alter role ${user} in database ${database} set statement_timeout = 0`

function unreached(url: DatabaseUrl, fault: DatabaseFault): Found {
  const [code, remedy] = UNREACHED[fault.kind] ?? ['unusable', () => "see the server's log"]
  return error(code, fault.message, remedy(url))
}

function ofServer(url: DatabaseUrl, facts: DatabaseFacts): Found[] {
  const found: Found[] = []
  if (facts.versionNumber < MIN_VERSION_NUMBER) {
    found.push(error('version_too_old', `PostgreSQL ${facts.version} is too old`, 'upgrade it to version 13 or later'))
  }
  if (facts.fsync === 'off') {
    found.push(
      error(
        'fsync_off',
        'fsync is off: a crash of the machine loses accepted graphs',
        'set fsync = on in postgresql.conf and reload',
      ),
    )
  }
  if (facts.fullPageWrites === 'off') {
    found.push(
      warning(
        'full_page_writes_off',
        'full_page_writes is off: a crash can damage tables, unless the file system writes whole pages at once',
        'set full_page_writes = on in postgresql.conf and reload',
      ),
    )
  }
  if (facts.encoding !== 'UTF8') {
    found.push(
      error(
        'not_utf8',
        `the database is encoded as ${facts.encoding}, which cannot hold every text`,
        `create another one: create database NAME encoding 'UTF8' template template0`,
      ),
    )
  }
  if (facts.isTransactionPooled && url.isPreparing) {
    found.push(
      error(
        'transaction_pooler',
        'a pooler in transaction mode is in between, which loses prepared statements',
        'add prepare=false to the address, let the pooler use session mode, or connect to the server itself',
      ),
    )
  }
  if (!facts.isEncrypted && !isLocal(url.hostname)) {
    found.push(
      warning(
        'not_encrypted',
        'the connection is not encrypted: whoever sees the network sees the graphs',
        'turn TLS on in the server (ssl = on), and add sslmode=verify-full and sslrootcert=FILE to the address',
      ),
    )
  }
  return facts.isStandby ? found : [...found, ...ofPrimary(url, facts)]
}

/** A standby has these from its primary, or gets them when it is promoted. */
function ofPrimary({ database }: DatabaseUrl, facts: DatabaseFacts): Found[] {
  const user = quoted(facts.user)
  const found: Found[] = []
  if (facts.isReadOnly) {
    found.push(
      error(
        'read_only',
        'transactions are read-only by default',
        `alter role ${user} in database ${quoted(database)} set default_transaction_read_only = off`,
      ),
    )
  }
  if (facts.statementTimeoutMs > 0) {
    found.push(
      warning(
        'statement_timeout',
        `the server ends statements after ${facts.statementTimeoutMs} ms; a write with much in it may take longer, and is then repeated for ever`,
        withoutTimeout(user, quoted(database)),
      ),
    )
  }
  if (facts.hasSchema ? !facts.mayUseSchema || facts.closedTables.length > 0 : !facts.mayCreateSchema) {
    found.push(missingRights(facts, user, quoted(database)))
  }
  if (facts.foreignTables.length > 0) {
    found.push(
      error(
        'foreign_schema',
        `the schema ${SCHEMA} belongs to another program (it has ${facts.foreignTables.join(', ')})`,
        `use another database, or rename that schema: alter schema ${SCHEMA} rename to NAME`,
      ),
    )
  }
  if (facts.schemaVersion !== undefined && facts.schemaVersion > SCHEMA_VERSION) {
    found.push(
      error(
        'newer_schema',
        `the tables have version ${facts.schemaVersion}, and this program knows ${SCHEMA_VERSION}`,
        'install a newer taskmill-control',
      ),
    )
  }
  if (facts.unreadableGraphs.length > 0) {
    const [first] = facts.unreadableGraphs
    found.push(
      error(
        'unreadable_graphs',
        `the rows of ${facts.unreadableGraphs.join(', ')} cannot be read: nothing of these graphs runs`,
        `GET /graphs?state=unreadable lists them all, with reasons; repair the rows, or install a newer taskmill-control, and restart a replica; or give one up: DELETE /graphs/${first}`,
      ),
    )
  }
  if (facts.freeConnections < CONNECTIONS_PER_REPLICA) {
    found.push(
      warning(
        'few_connections',
        `${Math.max(0, facts.freeConnections)} connections are left; a replica uses up to ${CONNECTIONS_PER_REPLICA}`,
        'raise max_connections, or the limit of the role or the database',
      ),
    )
  }
  if (facts.synchronousCommit === 'off') {
    found.push(
      warning(
        'synchronous_commit_off',
        'synchronous_commit is off by default; taskmill turns it on for its own transactions',
        'nothing, or set synchronous_commit = on for other users of the database',
      ),
    )
  }
  found.push(...ofReplication(facts))
  return found
}

function missingRights(facts: DatabaseFacts, user: string, database: string): Found {
  if (!facts.hasSchema) {
    return error(
      'missing_rights',
      `the user ${facts.user} may not create the schema ${SCHEMA}`,
      `grant create on database ${database} to ${user}`,
    )
  }
  const what = facts.mayUseSchema ? `the tables ${facts.closedTables.join(', ')}` : `the schema ${SCHEMA}`
  return error(
    'missing_rights',
    `the user ${facts.user} may not use ${what}`,
    `grant usage, create on schema ${SCHEMA} to ${user}; grant select, insert, update, delete on all tables in schema ${SCHEMA} to ${user}`,
  )
}

function ofReplication({ synchronousStandbyNames, synchronousStandbys }: DatabaseFacts): Found[] {
  if (synchronousStandbyNames.trim() === '') {
    return [
      warning(
        'no_synchronous_standby',
        'commits wait for no standby: when this server is lost, so are the graphs that it accepted last',
        'set synchronous_standby_names, or accept that this server is the only copy',
      ),
    ]
  }
  if (synchronousStandbys === undefined) {
    return [
      warning(
        'standbys_not_visible',
        'the user may not see whether the synchronous standbys are connected',
        'grant pg_monitor to the user',
      ),
    ]
  }
  if (synchronousStandbys > 0) return []
  return [
    error(
      'synchronous_standby_away',
      `commits wait for standbys (${synchronousStandbyNames}), and none is connected: they never end`,
      'start the standby, or take it out of synchronous_standby_names and reload',
    ),
  ]
}

function ofAll(answered: readonly Answered[], count: number): Finding[] {
  if (answered.length === 0) return []
  const found: Finding[] = []
  const primaries = answered.filter(({ facts }) => !facts.isStandby)
  if (primaries.length === 0 && answered.length === count) {
    found.push(
      error(
        'no_primary',
        count === 1 ? 'the server is a standby, which refuses writes' : 'all servers are standbys, which refuse writes',
        'add the address of the primary, or promote a standby: select pg_promote()',
      ),
    )
  }
  const clusters = new Set(answered.flatMap(({ facts }) => facts.systemIdentifier ?? []))
  if (clusters.size > 1) {
    found.push(
      error(
        'different_clusters',
        'the servers are not copies of each other',
        'name one primary and its own standbys only',
      ),
    )
  } else if (new Set(primaries.map(({ facts }) => facts.startedAt)).size > 1) {
    found.push(
      error(
        'two_primaries',
        `${primaries.map(({ url }) => url.shown).join(' and ')} all accept writes`,
        'stop those that are primaries no more, and make them standbys of the one that is (pg_rewind)',
      ),
    )
  }
  return found
}

const isLocal = (hostname: string): boolean => hostname.startsWith('/') || isLoopback(hostname)

/** A name as SQL takes it. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
