/**
 * The places of groups of graphs: a row for each graph of a group that has not ended.
 *
 * The turn that writes a graph inserts its row, and the turn that writes its end deletes it. Between the two, decisions about
 * a group follow one another under a lock. They depend on nothing but the rows, so any replica makes them, and a replica
 * that is killed in between leaves nothing half done.
 */
import type { SQL } from 'bun'
import { CHANNEL, NO_IDLING, PLACES } from './database.ts'
import { changedIn, isWhole, type OnFull, type Place, settled } from './place-rule.ts'
import { SCHEMA } from './schema-name.ts'

/** Decisions about groups whose names have the same hash follow one another. */
const PLACE_LOCK = 7_204_313

/** Of the graphs of a group that only wait, a decision reads so many, and so many times more as long as it needs more. */
const FIRST_QUEUED = 8

/** By the name of the group, in the order of acceptance. */
export type Places = ReadonlyMap<string, readonly Place[]>

/** Places of groups before and after all decisions that are due. Some graphs that wait before and after are left out. */
export interface Decisions {
  readonly places: Places
  readonly next: Places
}

/**
 * Rows of `place` come and go too fast for the statistics of the planner, which would have it read all of a group, and the
 * remains of earlier rows. A walk along the index marks those, and later walks skip them.
 */
const ALONG_INDEX = ['enable_seqscan', 'enable_bitmapscan', 'enable_sort']
  .map((name) => `set_config('${name}', 'off', true)`)
  .join()

/** What is to be decided about these groups. `added` comes last in each. */
export async function readDecisions(
  sql: SQL,
  groups: readonly string[],
  added: readonly Place[] = [],
): Promise<Decisions> {
  return await sql.begin(async (transaction) => {
    await transaction.unsafe(`select ${NO_IDLING}, ${ALONG_INDEX}`)
    return await decisionsIn(transaction, groups, added)
  })
}

async function decisionsIn(sql: SQL, groups: readonly string[], added: readonly Place[]): Promise<Decisions> {
  const places = new Map<string, readonly Place[]>()
  const next = new Map<string, readonly Place[]>()
  for (let open = groups, count = FIRST_QUEUED; open.length > 0; count *= FIRST_QUEUED) {
    const found = await readPlaces(sql, open, count)
    for (const name of open) {
      const each = [...(found.get(name) ?? []), ...added]
      places.set(name, each)
      next.set(name, settled(each))
    }
    open = open.filter((name) => !isWhole(places.get(name)!, next.get(name)!, count))
  }
  return { places, next }
}

/** The graphs of groups that matter for decisions, and the first `count` of each group that only wait. */
async function readPlaces(sql: SQL, groups: readonly string[], count: number): Promise<Places> {
  const schema = sql(SCHEMA)
  const rows: PlaceRow[] = await sql`
    select p.graph, p.position, p.group_name, g.graph_id, p.graph_limit, p.on_full, p.is_held, p.is_new, p.cancelled_by
    from unnest(${sql.array([...groups], 'TEXT')}) n (name), lateral (
      (select * from ${schema}.place where group_name = n.name and not is_queued)
      union all
      (select * from ${schema}.place where group_name = n.name and is_queued order by position limit ${count})) p
    join ${schema}.graph g on g.ordinal = p.graph`
  rows.sort((a, b) => Number(a.position) - Number(b.position))
  const byName = Map.groupBy(rows, ({ group_name }) => group_name)
  return new Map([...byName].map(([name, each]) => [name, each.map(placeOf)]))
}

/** Makes the decisions that are due, and rings if one is about a graph that is not `isHere`. Returns the places then. */
export async function settlePlaces(
  sql: SQL,
  groups: readonly string[],
  { settings, isHere }: { readonly settings: string; readonly isHere: (graph: number) => boolean },
): Promise<Places> {
  return await sql.begin(async (transaction) => {
    // A statement sees what was committed when it began. So the lock comes before the statement that reads.
    await transaction`
      with settings as materialized (select ${transaction.unsafe(`${settings}, ${NO_IDLING}, ${ALONG_INDEX}`)})
      select pg_advisory_xact_lock(${PLACE_LOCK}, hash) from (
        select distinct hashtext(name) as hash from unnest(${transaction.array([...groups], 'TEXT')}) x (name), settings
        order by hash) hashes`
    const { places, next } = await decisionsIn(transaction, groups, [])
    const changed = [...next].flatMap(([name, each]) => changedIn(places.get(name)!, each))
    if (changed.length > 0) await writePlaces(transaction, changed)
    if (!changed.every(({ graph }) => isHere(graph))) await transaction`select pg_notify(${CHANNEL}, ${PLACES})`
    return next
  })
}

async function writePlaces(sql: SQL, places: readonly Place[]): Promise<void> {
  const rows = places.map(({ graph, isHeld: is_held, isNew: is_new, cancelledBy: cancelled_by }) => {
    return { graph, is_held, is_new, cancelled_by }
  })
  await sql.unsafe(
    `update ${SCHEMA}.place p set is_held = x.is_held, is_new = x.is_new, cancelled_by = x.cancelled_by
     from json_to_recordset($1::json) x (graph bigint, is_held boolean, is_new boolean, cancelled_by text)
     where p.graph = x.graph`,
    [rows],
  )
}

interface PlaceRow {
  readonly graph: string
  readonly position: string
  readonly group_name: string
  readonly graph_id: string
  readonly graph_limit: number
  readonly on_full: OnFull
  readonly is_held: boolean
  readonly is_new: boolean
  readonly cancelled_by: string | null
}

const placeOf = ({ graph, graph_id: graphId, graph_limit: limit, on_full: onFull, ...row }: PlaceRow): Place => ({
  ...{ graph: Number(graph), graphId, limit, onFull, isHeld: row.is_held, isNew: row.is_new },
  cancelledBy: row.cancelled_by ?? undefined,
})
