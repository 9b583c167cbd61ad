/**
 * What one server says about itself. Reads only.
 *
 * Every question goes as a simple query: a pooler in transaction mode answers those, too.
 */
import { lookup } from 'node:dns/promises'
import type { SQL } from 'bun'
import { SET_ASIDE } from './adoption-rows.ts'
import { DatabaseFault, databaseFault, silentFault } from './database-fault.ts'
import { type DatabaseUrl, placeOf } from './database-url.ts'
import { SCHEMA } from './schema-name.ts'
import { tablesThere } from './shared-schema.ts'
import { closeSql, openSql } from './sql-client.ts'

export interface DatabaseFacts {
  /** Major version times 10,000, plus the minor one. */
  readonly versionNumber: number
  readonly version: string
  readonly isStandby: boolean
  readonly fsync: string
  readonly fullPageWrites: string
  /** Defaults of new sessions of this user in this database. */
  readonly synchronousCommit: string
  readonly isReadOnly: boolean
  /** Milliseconds after which the server ends a statement. 0: never. */
  readonly statementTimeoutMs: number
  readonly encoding: string
  readonly user: string
  /** Empty if commits wait for no standby. */
  readonly synchronousStandbyNames: string
  /** Connected standbys that commits wait for. Undefined if the user may not see them. */
  readonly synchronousStandbys: number | undefined
  /** Start of this server in its own clock: tells servers apart. */
  readonly startedAt: string
  /** The cluster. A standby has that of its primary. Undefined if the user may not see it. */
  readonly systemIdentifier: string | undefined
  readonly hasSchema: boolean
  /** Tables and views in a schema of our name that has none of ours. */
  readonly foreignTables: readonly string[]
  /** Version of our tables. Undefined without them, and for one who may not read it. */
  readonly schemaVersion: number | undefined
  /** Ids of some graphs that were set aside. */
  readonly unreadableGraphs: readonly string[]
  readonly mayCreateSchema: boolean
  /** Rights in the schema. Meaningless without it. */
  readonly mayUseSchema: boolean
  /** Tables of the schema that the user may not read or change. */
  readonly closedTables: readonly string[]
  /** Connections that are left for this user. */
  readonly freeConnections: number
  readonly isEncrypted: boolean
  /** Two clients share a connection to the server: a pooler in transaction mode. */
  readonly isTransactionPooled: boolean
  /** Median of a few. */
  readonly roundTripMs: number
}

const ROUND_TRIPS = 5

/** Pairs of transactions in which a busy pooler may give the same connection to both clients. */
const POOLER_TRIES = 5

/** What a server tells within `timeoutMs`. Throws `DatabaseFault`. */
export async function lookAtDatabase(url: DatabaseUrl, timeoutMs: number): Promise<DatabaseFacts> {
  const options = { max: 1, connectTimeoutMs: timeoutMs }
  const [first, second] = [openSql(url, options), openSql(url, options)]
  const { promise: silence, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(silentFault(timeoutMs)), timeoutMs)
  try {
    return await Promise.race([look(first, second), silence])
  } catch (error) {
    throw await withPlace(databaseFault(error), url)
  } finally {
    clearTimeout(timer)
    await Promise.all([closeSql(first), closeSql(second)])
  }
}

async function look(first: SQL, second: SQL): Promise<DatabaseFacts> {
  const [row] = await first.unsafe(questions()).simple()
  const isTransactionPooled = await shareConnection(first, second)
  return {
    ...{ versionNumber: Number(row.version_number), version: String(row.version).split(' ')[0]! },
    ...{ isStandby: row.is_standby === true, fsync: row.fsync, fullPageWrites: row.full_page_writes },
    ...{ synchronousCommit: row.synchronous_commit, isReadOnly: row.read_only === 'on', encoding: row.encoding },
    ...{ user: row.user_name, synchronousStandbyNames: row.standby_names, hasSchema: row.has_schema === true },
    statementTimeoutMs: Number(row.statement_timeout_ms),
    foreignTables: row.has_schema_version ? [] : wordsIn(row.tables),
    synchronousStandbys: row.hidden_standbys === 0 ? row.synchronous_standbys : undefined,
    mayCreateSchema: row.may_create_schema === true,
    mayUseSchema: row.may_use_schema === true,
    closedTables: wordsIn(row.closed_tables),
    freeConnections: Number(row.free_connections),
    isEncrypted: row.is_encrypted === true,
    startedAt: row.started_at,
    systemIdentifier: await textIfAllowed(first, 'select system_identifier::text as text from pg_control_system()'),
    schemaVersion: row.has_schema_version ? await schemaVersion(first) : undefined,
    unreadableGraphs: row.has_schema_version ? wordsIn((await textIfAllowed(first, unreadable())) ?? '') : [],
    isTransactionPooled,
    roundTripMs: await roundTripMs(first),
  }
}

const wordsIn = (text: string): string[] => (text === '' ? [] : text.split(' '))

/** Whether both clients are given one connection to the server, as a pooler in transaction mode does. */
async function shareConnection(first: SQL, second: SQL): Promise<boolean> {
  for (let i = 0; i < POOLER_TRIES; i++) {
    const [[one], [other]] = [await first.unsafe(BACKEND).simple(), await second.unsafe(BACKEND).simple()]
    if (one.pid === other.pid) return true
  }
  return false
}

async function roundTripMs(sql: SQL): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const start = performance.now()
    await sql.unsafe('select 1').simple()
    times.push(performance.now() - start)
  }
  return times.sort((a, b) => a - b)[ROUND_TRIPS >> 1]!
}

async function schemaVersion(sql: SQL): Promise<number | undefined> {
  const text = await textIfAllowed(sql, `select version::text as text from ${SCHEMA}.schema_version`)
  return text === undefined ? undefined : Number(text)
}

/** Undefined if this user may not ask: services that run databases forbid some questions. */
async function textIfAllowed(sql: SQL, question: string): Promise<string | undefined> {
  try {
    const [row] = await sql.unsafe(question).simple()
    return row?.text
  } catch (error) {
    if (databaseFault(error).isAmbiguous) throw error
    return undefined
  }
}

/** Bun says the same of a host that refuses and of a name that does not resolve. This tells them apart. */
async function withPlace(fault: DatabaseFault, { hostname, port }: DatabaseUrl): Promise<DatabaseFault> {
  if (fault.kind !== 'away' || fault.sqlState !== undefined) return fault
  const text = (await isResolved(hostname))
    ? `no server answers at ${placeOf(hostname, port)}`
    : `the name ${hostname} does not resolve`
  return new DatabaseFault(fault.kind, text, undefined, { cause: fault })
}

const isResolved = async (hostname: string): Promise<boolean> =>
  hostname.startsWith('/') ||
  (await lookup(hostname).then(
    () => true,
    () => false,
  ))

/** An earlier version of the schema has no such column, and no such graphs. */
const unreadable = (): string => `
  select coalesce(string_agg(graph_id, ' '), '') as text from (select graph_id from ${SCHEMA}.graph
    where owner = ${SET_ASIDE} order by ordinal limit 3) few`

const BACKEND = 'select pg_backend_pid() as pid'

/**
 * Functions and settings that PostgreSQL 10 has already, so that older versions are told about rather than failing. A row of
 * pg_stat_replication has no state for users without pg_monitor.
 */
const questions = (): string => `
select current_setting('server_version_num')::int as version_number,
  current_setting('server_version') as version,
  pg_is_in_recovery() as is_standby,
  pg_postmaster_start_time()::text as started_at,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('synchronous_commit') as synchronous_commit,
  current_setting('synchronous_standby_names') as standby_names,
  current_setting('default_transaction_read_only') as read_only,
  (select setting from pg_settings where name = 'statement_timeout') as statement_timeout_ms,
  current_setting('server_encoding') as encoding,
  current_user::text as user_name,
  (select count(*)::int from pg_stat_replication where sync_state in ('sync', 'quorum')) as synchronous_standbys,
  (select count(*)::int from pg_stat_replication where sync_state is null) as hidden_standbys,
  to_regnamespace('${SCHEMA}') is not null as has_schema,
  exists (select from pg_class where relnamespace = to_regnamespace('${SCHEMA}') and relname = 'schema_version')
    as has_schema_version,
  coalesce((${tablesThere()}), '') as tables,
  has_database_privilege(current_database(), 'CREATE') as may_create_schema,
  coalesce((select bool_and(has_schema_privilege(oid, 'USAGE') and has_schema_privilege(oid, 'CREATE'))
    from pg_namespace where nspname = '${SCHEMA}'), false) as may_use_schema,
  coalesce((select string_agg(relname, ' ' order by relname) from pg_class
    where relnamespace = to_regnamespace('${SCHEMA}') and relkind = 'r'
      and not (has_table_privilege(oid, 'SELECT') and has_table_privilege(oid, 'INSERT')
        and has_table_privilege(oid, 'UPDATE') and has_table_privilege(oid, 'DELETE'))), '') as closed_tables,
  coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as is_encrypted,
  (select least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - all_users,
      case when role_limit < 0 then 1000000 else role_limit - own end,
      case when database_limit < 0 then 1000000 else database_limit - here end)
    from (select count(*)::int as all_users,
        count(*) filter (where usename = current_user)::int as own,
        count(*) filter (where datname = current_database())::int as here
      from pg_stat_activity where datname is not null) as used,
      (select rolconnlimit as role_limit from pg_roles where rolname = current_user) as role,
      (select datconnlimit as database_limit from pg_database where datname = current_database()) as base
  ) as free_connections`
