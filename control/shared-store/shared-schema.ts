/** The tables of a cluster of control services. Made at the first start, under a lock. */
import type { SQL } from 'bun'
import { SCHEMA } from './schema-name.ts'

/** Replicas that start at the same time make the tables one after the other. */
const SCHEMA_LOCK = 7_204_311

/**
 * A graph is a row, with its frames in rows of their own. Both are only inserted and deleted: PostgreSQL would keep the
 * earlier version of each row that is updated. `replica` is updated at each turn and stays small.
 */
const TABLES = [
  `create table if not exists ${SCHEMA}.replica (
     id bigint generated always as identity primary key, epoch int not null default 1, state text not null default 'live',
     turn bigint not null default 0, address text not null, lease_until timestamptz not null) with (fillfactor = 20)`,
  `create table if not exists ${SCHEMA}.graph (
     ordinal bigint primary key, graph_id text not null unique, payload text not null)`,
  `create table if not exists ${SCHEMA}.task_id (id text primary key, graph bigint not null)`,
  `create index if not exists task_id_graph on ${SCHEMA}.task_id (graph)`,
  `create table if not exists ${SCHEMA}.frame (
     graph bigint not null, number bigint not null, payload text not null,
     primary key (graph, number))`,
  `create table if not exists ${SCHEMA}.answer (
     scope text not null, key text not null, hash text not null, answer text not null, at bigint not null,
     primary key (scope, key))`,
  `create index if not exists answer_at on ${SCHEMA}.answer (at)`,
  `create table if not exists ${SCHEMA}.result (name text primary key, graph bigint not null, json text not null)`,
  `create index if not exists result_graph on ${SCHEMA}.result (graph)`,
]

/** Does nothing if they are there: the user may then lack the right to make them. */
export async function makeTables(sql: SQL): Promise<void> {
  const [last] = await sql`select to_regclass(${`${SCHEMA}.result`}) is not null as exists`
  if (last.exists) return
  await sql.begin(async (transaction) => {
    await transaction.unsafe(`select pg_advisory_xact_lock(${SCHEMA_LOCK})`)
    await transaction.unsafe(`create schema if not exists ${SCHEMA}`)
    for (const table of TABLES) await transaction.unsafe(table)
  })
}
