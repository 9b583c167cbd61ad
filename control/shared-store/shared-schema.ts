/**
 * The tables of a cluster of control services, and how they came to be: a list of migrations that only grows. The first
 * replica that starts applies those that are missing, under a lock.
 *
 * A migration must leave running replicas of the version before able to work: they are replaced one by one.
 */
import type { SQL } from 'bun'
import { UsageError } from '../../shared/errors.ts'
import { SCHEMA } from './schema-name.ts'

/** Replicas that start at the same time make the tables one after the other. */
const SCHEMA_LOCK = 7_204_311

/**
 * A graph is a row, with its frames in rows of their own. Both are only inserted and deleted: PostgreSQL would keep the
 * earlier version of each row that is updated. `replica` is updated at each turn and stays small.
 */
const MIGRATIONS: readonly (readonly string[])[] = [
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
]

/** Version of the schema that this program needs. */
export const SCHEMA_VERSION = MIGRATIONS.length

/** Makes or migrates the tables. `settings` come first in each transaction. Throws `UsageError` for a newer schema. */
export async function makeTables(sql: SQL, settings: string): Promise<void> {
  const found = await foundSchema(sql)
  assertNotNewer(found.version)
  if (found.version === SCHEMA_VERSION) return
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
    for (const statement of MIGRATIONS.slice(version).flat()) await transaction.unsafe(statement)
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
        where n.nspname = '${SCHEMA}' and c.relname = 'schema_version') as has_version`)
  if (!found.has_version) return { isThere: found.is_there, version: 0 }
  const [row] = await sql.unsafe(`select version from ${SCHEMA}.schema_version`)
  return { isThere: true, version: row.version }
}

function assertNotNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return
  throw new UsageError(
    `the database has version ${version} of the schema ${SCHEMA}, and this program knows ${SCHEMA_VERSION}: install a newer taskmill-control`,
  )
}
