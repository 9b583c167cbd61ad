/**
 * The tables of a cluster of control services, and how they came to be: a list of migrations that only grows. The first
 * replica that starts applies those that are missing, under a lock.
 *
 * A migration must leave running replicas of the version before able to work: they are replaced one by one.
 */
import type { SQL } from 'bun'
import { UsageError } from '../../../shared/contract/errors.ts'
import { SCHEMA } from './schema-name.ts'

/** Replicas that start at the same time make the tables one after the other. */
const SCHEMA_LOCK = 7_204_311

/**
 * A graph is a row, with its frames in rows of their own. Both are only inserted and deleted: PostgreSQL would keep the
 * earlier version of each row that is updated. `replica` is updated at each turn and stays small.
 */
const migrations = (): readonly (readonly string[])[] => [
  [
    `create table ${SCHEMA}.replica (
       id bigint generated always as identity primary key, epoch int not null default 1, state text not null default 'live',
       turn bigint not null default 0, address text not null, lease_until timestamptz not null) with (fillfactor = 20)`,
    `create table ${SCHEMA}.graph (
       ordinal bigint primary key, graph_id text not null unique, payload text not null)`,
    `create table ${SCHEMA}.task_id (id text primary key, graph bigint not null)`,
    `create index task_id_graph on ${SCHEMA}.task_id (graph)`,
    `create table ${SCHEMA}.frame (
       graph bigint not null, number bigint not null, payload text not null,
       primary key (graph, number))`,
    `create table ${SCHEMA}.answer (
       scope text not null, key text not null, hash text not null, answer text not null, at bigint not null,
       primary key (scope, key))`,
    `create index answer_at on ${SCHEMA}.answer (at)`,
    `create table ${SCHEMA}.result (name text primary key, graph bigint not null, json text not null)`,
    `create index result_graph on ${SCHEMA}.result (graph)`,
  ],
  [
    // Tasks that refer to a result beside the first one. A replica of the version before knows none.
    `alter table ${SCHEMA}.result add column sharers int not null default 0`,
    // `delivery` is null once a callback was delivered or given up. `replica` delivers it.
    `create table ${SCHEMA}.callback (id text primary key, graph_id text not null, replica bigint not null, delivery text)`,
    // `seq` and `changes` find past events. Frames are only appended, mostly in the order of their numbers.
    `alter table ${SCHEMA}.frame add column seq bigint not null default 0, add column changes int not null default 0`,
    `create index frame_seq on ${SCHEMA}.frame using brin (seq) with (pages_per_range = 16)`,
    `create table ${SCHEMA}.removal (seq bigint primary key, graph_id text not null, at bigint not null)`,
    `create index removal_graph_id on ${SCHEMA}.removal (graph_id)`,
    `create index callback_waiting on ${SCHEMA}.callback (replica) where delivery is not null`,
  ],
  [
    // Many replicas are active, and each owns graphs. Those of the version before have no owner, and their frames no ends.
    `alter table ${SCHEMA}.replica add column is_sharing boolean not null default false`,
    `alter table ${SCHEMA}.graph add column owner bigint not null default 0`,
    `create index graph_owner on ${SCHEMA}.graph (owner, ordinal)`,
    `alter table ${SCHEMA}.frame add column ends boolean not null default false`,
    `create index frame_ends on ${SCHEMA}.frame (graph) where ends`,
  ],
  [
    // The lock of its data directory, which shows a later replica there that this one has ended.
    `alter table ${SCHEMA}.replica add column lock_id text`,
  ],
  [
    // Runtime services that callers have added, drained, removed or lost. The row of `runtime_pool` counts the changes.
    `create table ${SCHEMA}.runtime (
       name text primary key, position bigint not null, url text, labels text not null, removed_url text,
       is_draining boolean not null, losses int not null, version bigint not null)`,
    `create table ${SCHEMA}.runtime_pool (version bigint not null)`,
    `insert into ${SCHEMA}.runtime_pool values (0)`,
    // Attempts in runtime services that nobody waits for. `replica` ends them.
    `create table ${SCHEMA}.orphan (handle_id text primary key, replica bigint not null, payload text not null)`,
  ],
  [
    // Why the graph was set aside, and when (milliseconds since 1970). Counts while `owner` is `SET_ASIDE`.
    `alter table ${SCHEMA}.graph add column unreadable text, add column unreadable_at bigint`,
  ],
  [
    // Tasks that the replica stores, and those of them whose graphs have ended.
    `alter table ${SCHEMA}.replica add column stored_tasks bigint not null default 0,
       add column ended_tasks bigint not null default 0`,
    // In the frame with which the graph ended: when that was, and its tasks.
    `alter table ${SCHEMA}.frame add column ended_at bigint, add column tasks int`,
    `create index frame_ended_at on ${SCHEMA}.frame (ended_at, graph) include (tasks) where ended_at is not null`,
  ],
  [
    // The name of the cluster. No row: it has none.
    `create table ${SCHEMA}.cluster (name text not null)`,
  ],
  [
    // The token of an added runtime service; empty for none. Null for those of the version before, which have that of all.
    `alter table ${SCHEMA}.runtime add column token text`,
  ],
  [
    // The graphs that share a limit and have not ended, in the order of acceptance. Replicas of the version before accept none.
    `create table ${SCHEMA}.place (
       graph bigint primary key references ${SCHEMA}.graph on delete cascade,
       position bigint generated always as identity, group_name text not null, graph_limit int not null,
       on_full text not null, is_held boolean not null default false, is_new boolean not null default true,
       cancelled_by text)`,
    `create index place_group_name on ${SCHEMA}.place (group_name, position)`,
  ],
  [
    // Those that only wait. A decision reads the first of them, however many there are, and all others.
    `alter table ${SCHEMA}.place add column is_queued boolean not null generated always as
       (not is_held and not is_new and on_full <> 'refuse' and cancelled_by is null) stored`,
    `create index place_queue on ${SCHEMA}.place (group_name, is_queued, position)`,
    `drop index ${SCHEMA}.place_group_name`,
  ],
  [
    // The pauses of types and of the service (empty key). Replicas of the version before do not keep to them.
    `create table ${SCHEMA}.pause (key text primary key, payload text not null)`,
  ],
  [
    // The schedules, and the graphs that they have submitted lately: in both columns that are unique, one graph each.
    `create table ${SCHEMA}.schedule (
       name text primary key, version bigint not null, definition text not null, progress text not null)`,
    `create table ${SCHEMA}.schedule_run (
       schedule text not null, number bigint not null, due bigint, graph bigint not null,
       primary key (schedule, number), unique (schedule, due))`,
    // Changes of schedules that no turn made.
    `create table ${SCHEMA}.schedule_change (changes bigint not null)`,
    `insert into ${SCHEMA}.schedule_change values (0)`,
    // Replicas of the version before submit none.
    `alter table ${SCHEMA}.replica add column submits_schedules boolean not null default false`,
  ],
  [
    // Since when, by whom and why a runtime service is drained.
    `alter table ${SCHEMA}.runtime add column drain text`,
  ],
  [
    // Whether the replica has a directory of schedules.
    `alter table ${SCHEMA}.replica add column has_schedules_dir boolean not null default false`,
  ],
  [
    // Who asked for what, at any replica. Ids rise with time. Replicas of the version before write files.
    `create table ${SCHEMA}.audit (id text collate "C" primary key, record text not null, answer text)`,
  ],
  [
    // Whose the graph is, or was; null for nobody in particular. Replicas of the version before set those of tenants aside.
    `alter table ${SCHEMA}.graph add column tenant text`,
    `alter table ${SCHEMA}.removal add column tenant text`,
    // The graph that was accepted with the answer. Null for those of the version before, whose answers name it.
    `alter table ${SCHEMA}.answer add column graph_id text`,
  ],
]

/** Version of the schema that this program needs. */
export const SCHEMA_VERSION = migrations().length

/** Some tables and views in the schema, with spaces between them, for a schema without `schema_version`. */
export const tablesThere = (): string => `
  select string_agg(relname, ' ') from (select relname from pg_class
    where relnamespace = (select oid from pg_namespace where nspname = '${SCHEMA}') and relkind in ('r', 'p', 'v', 'm', 'f')
    order by relname limit 3) as few`

/** The version of the tables, 0 if there are none. Throws `UsageError` for a newer or a foreign schema. */
export async function keptVersion(sql: SQL): Promise<number> {
  const { version } = await foundSchema(sql)
  assertNotNewer(version)
  return version
}

/** Makes or migrates the tables. `settings` come first in the transaction. Throws `UsageError` as `keptVersion`. */
export async function makeTables(sql: SQL, settings: string): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction.unsafe(`select ${settings}`)
    await transaction.unsafe(`select pg_advisory_xact_lock(${SCHEMA_LOCK})`)
    const { version, isThere } = await foundSchema(transaction)
    assertNotNewer(version)
    // One who may not create schemas may have been given one. "if not exists" refuses him all the same.
    if (!isThere) await transaction.unsafe(`create schema ${SCHEMA}`)
    if (version === 0) {
      await transaction.unsafe(`create table ${SCHEMA}.schema_version (version int not null)`)
      await transaction.unsafe(`insert into ${SCHEMA}.schema_version values (0)`)
    }
    for (const statement of migrations().slice(version).flat()) await transaction.unsafe(statement)
    await transaction.unsafe(`update ${SCHEMA}.schema_version set version = ${SCHEMA_VERSION}`)
  })
}

/**
 * Reads the catalog itself. Functions such as to_regclass answer from a cache of the connection, which does not learn of
 * other transactions while this one waits for the lock.
 */
async function foundSchema(sql: SQL): Promise<{ readonly isThere: boolean; readonly version: number }> {
  const [found] = await sql.unsafe(`
    select exists (select from pg_namespace where nspname = '${SCHEMA}') as is_there,
      exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = '${SCHEMA}' and c.relname = 'schema_version') as has_version,
      (${tablesThere()}) as tables`)
  if (!found.has_version && found.tables !== null) throw foreign(`it has ${found.tables.replaceAll(' ', ', ')}`)
  if (!found.has_version) return { isThere: found.is_there, version: 0 }
  const [row] = await sql.unsafe(`select version::text from ${SCHEMA}.schema_version`)
  if (!/^\d+$/.test(row?.version)) throw foreign('its table schema_version has no version')
  return { isThere: true, version: Number(row.version) }
}

const foreign = (why: string): UsageError =>
  new UsageError(
    `the schema ${SCHEMA} of the database belongs to another program (${why}): use another database, or rename that schema (alter schema ${SCHEMA} rename to NAME)`,
  )

function assertNotNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return
  throw new UsageError(
    `the database has version ${version} of the schema ${SCHEMA}, and this program knows ${SCHEMA_VERSION}: install a newer taskmill-control`,
  )
}
