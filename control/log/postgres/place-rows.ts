/**
 * The places of groups of graphs: a row for each graph of a group that has not ended.
 *
 * The turn that writes a graph inserts its row, and the turn that writes its end deletes it. Between the two, decisions about
 * a group follow one another under a lock. They depend on nothing but the rows, so any replica makes them, and a replica
 * that is killed in between leaves nothing half done.
 */
import type { SQL } from 'bun'
import { CHANNEL, NO_IDLING, PLACES } from './database.ts'
import { changedIn, type OnFull, type Place, settled } from './place-rule.ts'
import { SCHEMA } from './schema-name.ts'

/** Decisions about groups whose names have the same hash follow one another. */
const PLACE_LOCK = 7_204_313

/** By the name of the group, in the order of acceptance. */
export type Places = ReadonlyMap<string, readonly Place[]>

export async function readPlaces(sql: SQL, groups: readonly string[]): Promise<Places> {
  const schema = sql(SCHEMA)
  const rows: PlaceRow[] = await sql`
    select p.graph, p.group_name, g.graph_id, p.graph_limit, p.on_full, p.is_held, p.is_new, p.cancelled_by
    from ${schema}.place p join ${schema}.graph g on g.ordinal = p.graph
    where p.group_name = any(${sql.array([...groups], 'TEXT')}) order by p.position`
  const byName = Map.groupBy(rows, ({ group_name }) => group_name)
  return new Map(groups.map((name) => [name, (byName.get(name) ?? []).map(placeOf)]))
}

/** Makes the decisions that are due, and rings if one is about a graph that is not `isHere`. Returns all places then. */
export async function settlePlaces(
  sql: SQL,
  groups: readonly string[],
  { settings, isHere }: { readonly settings: string; readonly isHere: (graph: number) => boolean },
): Promise<Places> {
  return await sql.begin(async (transaction) => {
    await transaction.unsafe(`select ${settings}, ${NO_IDLING}`)
    // A statement sees what was committed when it began. So the lock comes before the statement that reads.
    await transaction`
      select pg_advisory_xact_lock(${PLACE_LOCK}, hash) from (
        select distinct hashtext(name) as hash from unnest(${transaction.array([...groups], 'TEXT')}) x (name)
        order by hash) hashes`
    const places = await readPlaces(transaction, groups)
    const next = new Map([...places].map(([name, each]) => [name, settled(each)]))
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
