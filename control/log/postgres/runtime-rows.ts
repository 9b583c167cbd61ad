/**
 * The runtime services that callers have added, drained, removed or lost: a row for each name.
 *
 * The row of `runtime_pool` is locked by each change and counts them, so that changes of several replicas follow one
 * another, and a look at an unchanged pool reads one row.
 */
import type { SQL } from 'bun'
import type { Log } from '../../../shared/logs/log.ts'
import { isObject } from '../../../shared/text/json.ts'
import { isPause, type Pause } from '../../rules/pause.ts'
import type { PoolState } from '../../rules/pool-state.ts'
import { CHANNEL } from './database.ts'
import { readable } from './readable-rows.ts'
import { SCHEMA } from './schema-name.ts'

/** The pool after so many changes. */
export interface KeptPool {
  readonly version: number
  readonly state: PoolState
}

interface RuntimeRow {
  readonly name: string
  /** The order in which runtime services were added. */
  readonly position: number
  /** Undefined for a name of `--runtime-url`, and for a removed name whose losses are remembered. */
  readonly url: string | undefined
  readonly labels: string
  /** As in a `RuntimeEntry`. Replicas of an earlier version write none. */
  readonly token: string | undefined
  /** The address at which a runtime service of `--runtime-url` was removed. */
  readonly removedUrl: string | undefined
  readonly isDraining: boolean
  /** A `Pause` as JSON. Replicas of an earlier version write none. */
  readonly drain: string | undefined
  readonly losses: number
  /** The change that wrote the row. */
  readonly version: number
}

/** The pool; undefined if it has not changed since the version `known`. With it, the number of changes of schedules. */
export async function readPool(
  sql: SQL,
  known: number,
  log: Log,
): Promise<{ readonly pool: KeptPool | undefined; readonly scheduleChanges: number }> {
  const { version, rows, scheduleChanges } = await readRows(sql, known)
  return { pool: version === known ? undefined : { version, state: stateOf(rows, log) }, scheduleChanges }
}

/** Makes a change in the transaction `sql`. Others see it after the commit, which rings them. */
export async function changePool(sql: SQL, log: Log, make: (state: PoolState) => PoolState): Promise<KeptPool> {
  await sql`select from ${sql(SCHEMA)}.runtime_pool for update`
  const { version, rows } = await readRows(sql, -1)
  const state = stateOf(rows, log)
  const next = make(state)
  if (next === state) return { version, state }
  await writeRows(sql, rows, rowsOf(next, rows, version + 1))
  await sql`update ${sql(SCHEMA)}.runtime_pool set version = ${version + 1}`
  await sql`select pg_notify(${CHANNEL}, '')`
  return { version: version + 1, state: next }
}

async function readRows(
  sql: SQL,
  known: number,
): Promise<{ readonly version: number; readonly rows: RuntimeRow[]; readonly scheduleChanges: number }> {
  const schema = sql(SCHEMA)
  const found = await sql`
    select p.version as pool_version, r.name, r.position, r.url, r.labels, r.token, r.removed_url, r.is_draining, r.drain,
      r.losses, r.version, c.changes
    from ${schema}.runtime_pool p cross join ${schema}.schedule_change c left join ${schema}.runtime r on p.version <> ${known} order by r.position, r.version`
  const rows: RuntimeRow[] = []
  for (const { name, position, url, labels, token, removed_url, is_draining, drain, losses, version } of found) {
    if (name === null) continue
    rows.push({
      ...{ name, position: Number(position), url: url ?? undefined, labels, token: token ?? undefined },
      removedUrl: removed_url ?? undefined,
      ...{ isDraining: is_draining, drain: drain ?? undefined, losses, version: Number(version) },
    })
  }
  return { version: Number(found[0].pool_version), rows, scheduleChanges: Number(found[0].changes) }
}

function stateOf(rows: readonly RuntimeRow[], log: Log): PoolState {
  const lost = rows.filter(({ losses }) => losses > 0).sort((a, b) => a.version - b.version)
  return {
    added: rows.flatMap(({ name, url, labels, token }) =>
      url === undefined
        ? []
        : { name, url, labels: readable([{ id: name, json: labels }], 'runtime', isLabels, log)[0] ?? {}, token },
    ),
    draining: new Map(
      rows.flatMap(({ name, isDraining, drain: json }): [string, Pause][] =>
        isDraining ? [[name, (json && readable([{ id: name, json }], 'drain', isPause, log)[0]) || { since: 0 }]] : [],
      ),
    ),
    removed: rows.flatMap(({ name, removedUrl: url }) => (url === undefined ? [] : { name, url, labels: {} })),
    losses: new Map(lost.map(({ name, losses }) => [name, losses])),
  }
}

const isLabels = (value: unknown): value is Readonly<Record<string, string>> =>
  isObject(value) && Object.values(value).every((each) => typeof each === 'string')

/** An unchanged row keeps its version. */
function rowsOf(state: PoolState, earlier: readonly RuntimeRow[], version: number): RuntimeRow[] {
  const known = new Map(earlier.map((row) => [row.name, row]))
  const added = new Map(state.added.map((entry) => [entry.name, entry]))
  const removed = new Map(state.removed.map(({ name, url }) => [name, url]))
  let last = Math.max(0, ...earlier.map(({ position }) => position))
  const names = new Set([...added.keys(), ...state.draining.keys(), ...removed.keys(), ...state.losses.keys()])
  return [...names].map((name) => {
    const row = known.get(name)
    const entry = added.get(name)
    const drain = state.draining.get(name)
    const isNew = entry !== undefined && row?.url === undefined
    const made = {
      ...{ name, position: isNew ? ++last : (row?.position ?? 0), url: entry?.url },
      ...{ labels: JSON.stringify(entry?.labels ?? {}), token: entry?.token, removedUrl: removed.get(name) },
      ...{ isDraining: drain !== undefined, drain: drain && JSON.stringify(drain) },
      ...{ losses: state.losses.get(name) ?? 0, version: row?.version ?? version },
    }
    return row !== undefined && Bun.deepEquals(row, made) ? row : { ...made, version }
  })
}

async function writeRows(sql: SQL, earlier: readonly RuntimeRow[], later: readonly RuntimeRow[]): Promise<void> {
  const schema = sql(SCHEMA)
  const names = new Set(later.map(({ name }) => name))
  const gone = earlier.filter(({ name }) => !names.has(name)).map(({ name }) => name)
  const written = later.filter((row) => !earlier.includes(row))
  await sql`delete from ${schema}.runtime where name = any(${sql.array(gone, 'TEXT')})`
  for (const { name, position, url, labels, token, removedUrl, isDraining, drain, losses, version } of written) {
    await sql`
      insert into ${schema}.runtime (name, position, url, labels, token, removed_url, is_draining, drain, losses, version)
      values (${name}, ${position}, ${url ?? null}, ${labels}, ${token ?? null}, ${removedUrl ?? null}, ${isDraining},
        ${drain ?? null}, ${losses}, ${version})
      on conflict (name) do update set position = excluded.position, url = excluded.url, labels = excluded.labels,
        token = excluded.token, removed_url = excluded.removed_url, is_draining = excluded.is_draining,
        drain = excluded.drain, losses = excluded.losses, version = excluded.version`
  }
}
