/**
 * A turn as one statement, and so as one commit.
 *
 * Rows are sent as JSON, a list for each table. As array literals they cost this process twice as much CPU time: each quote
 * of a payload is escaped in JavaScript. The text of the statement is a constant but for the parts that not all turns have,
 * so each connection prepares it once.
 */
import type { SQL } from 'bun'
import type { TaskNumbers } from '../../task/task-count.ts'
import { scheduleChanges } from './schedule-rows.ts'
import { SCHEMA } from './schema-name.ts'
import { callbackChanges } from './shared-callbacks.ts'
import { orphanChanges } from './shared-orphans.ts'
import type { AddParameter, NewFrame, NewGraph, Removal, TurnNews, TurnWrites } from './turn-writes.ts'

/** The replica that writes, with its lease. */
export interface TurnOf {
  readonly id: number
  readonly epoch: number
  /** The number of the turn: one higher than that of the turn before. */
  readonly number: number
  readonly leaseMs: number
  /** Comes first in each transaction. */
  readonly settings: string
  /** The tasks that the replica stores. */
  readonly stored: TaskNumbers
}

export interface TurnAnswer extends TurnNews {
  readonly others: TaskNumbers
}

/**
 * The numbers of tasks of the other replicas, and what schedules need to know. Undefined if nothing was written: the replica has lost its lease, or an
 * earlier try of this turn was committed.
 */
export async function writeTurn(sql: SQL, turn: TurnOf, writes: TurnWrites): Promise<TurnAnswer | undefined> {
  const values: unknown[] = []
  const add: AddParameter = (value) => `$${values.push(value)}`
  const [row] = await sql.unsafe(statementOf(turn, writes, add), values)
  if (row.done !== 1) return undefined
  return {
    others: { all: Number(row.stored), ended: Number(row.ended) },
    at: Number(row.at),
    submitters: row.submitters,
  }
}

function statementOf(
  { id, epoch, number, leaseMs, settings, stored }: TurnOf,
  writes: TurnWrites,
  add: AddParameter,
): string {
  const { graphs, frames } = writes
  const turn = add(number)
  const me = add(id)
  const graphRows = graphs.map(({ ordinal, id: graph_id, tenant, payload, taskIds: task_ids }) => {
    return { ordinal, graph_id, tenant, payload, task_ids }
  })
  const frameRows = frames.map(({ ordinal, endedAt: ended_at, freesPlace: _, freedIds: __, key: ___, ...frame }) => ({
    graph: ordinal,
    ended_at,
    ...frame,
  }))
  return `
    with settings as materialized (select ${settings}),
    fence as (
      update ${SCHEMA}.replica set turn = ${turn}, lease_until = clock_timestamp() + ${add(leaseMs)} * interval '1 ms',
        stored_tasks = ${add(stored.all)}, ended_tasks = ${add(stored.ended)}
      where id = ${me} and epoch = ${add(epoch)} and state = 'live' and turn = ${turn} - 1
        and (select count(*) from settings) = 1
      returning id),
    graphs as materialized (select x.*, fence.id as owner
      from json_to_recordset(${add(graphRows)}::json) 
        x (ordinal bigint, graph_id text, tenant text, payload text, task_ids json), fence),
    g as (insert into ${SCHEMA}.graph (ordinal, graph_id, tenant, payload, owner)
      select ordinal, graph_id, tenant, payload, owner from graphs where payload <> ''),
    t as (insert into ${SCHEMA}.task_id (id, graph)
      select x.id, ordinal from graphs, json_array_elements_text(task_ids) x (id)),
    f as (insert into ${SCHEMA}.frame (graph, number, payload, seq, changes, ends, ended_at, tasks)
      select x.* from json_to_recordset(${add(frameRows)}::json)
        x (graph bigint, number bigint, payload text, seq bigint, changes int, ends boolean,
          ended_at bigint, tasks int), fence)${answers([...graphs, ...frames], add)}${placeChanges(writes, add)}${scheduleChanges(graphs, add)}${deletions(writes, add)}${resultChanges(writes, add)}${callbackChanges(writes.callbacks, id, add)}${orphanChanges(writes.orphans, id, add)}${removalChanges(writes.removals, add)}${revivals(writes, add)}
    select (select count(*)::int from fence) as done, coalesce(sum(stored_tasks), 0) as stored,
      coalesce(sum(ended_tasks), 0) as ended, extract(epoch from clock_timestamp()) * 1000 as at,
      coalesce(string_agg(id::text || case when has_schedules_dir then '*' else '' end, ',' order by id)
        filter (where submits_schedules), '') as submitters
    from ${SCHEMA}.replica where state = 'live' and id <> ${me}`
}

/** Answers to requests that may be repeated. */
function answers(kept: readonly (Pick<NewGraph, 'key' | 'id'> | Pick<NewFrame, 'key'>)[], add: AddParameter): string {
  const rows = kept.flatMap(({ key, ...graph }) =>
    key === undefined ? [] : { ...key, key: key.key.toWellFormed(), graph_id: 'id' in graph ? graph.id : null },
  )
  if (rows.length === 0) return ''
  return `,
    a as (insert into ${SCHEMA}.answer (scope, key, hash, answer, at, graph_id)
      select x.* from json_to_recordset(${add(rows)}::json)
        x (scope text, key text, hash text, answer text, at bigint, graph_id text), fence)`
}

/** Places that graphs ask for, and those of graphs that have ended. Those of removed graphs go with them. */
function placeChanges({ graphs, frames, revived }: TurnWrites, add: AddParameter): string {
  const asked = [...graphs, ...revived].flatMap(({ ordinal, place }) =>
    place === undefined
      ? []
      : { graph: ordinal, group_name: place.group, graph_limit: place.limit, on_full: place.onFull },
  )
  const freed = frames.flatMap(({ ordinal, freesPlace }) => (freesPlace === true ? ordinal : []))
  let changes = ''
  if (asked.length > 0)
    changes += `,
    p as (insert into ${SCHEMA}.place (graph, group_name, graph_limit, on_full)
      select x.* from json_to_recordset(${add(asked)}::json)
        x (graph bigint, group_name text, graph_limit int, on_full text), fence)`
  if (freed.length > 0)
    changes += `,
    dp as (delete from ${SCHEMA}.place o using fence, unnest(${add(`{${freed.join()}}`)}::bigint[]) x (graph)
      where o.graph = x.graph)`
  return changes
}

/** Few turns delete something, and plans of deletions cost as much as the rest of a turn. */
function deletions({ removed, freedIds, freedKeys }: TurnWrites, add: AddParameter): string {
  if (removed.length + freedIds.length + freedKeys.length === 0) return ''
  const graphs = `unnest(${add(`{${removed.join()}}`)}::bigint[]) x (graph)`
  const ids = add(freedIds.map(([graph, id]) => ({ graph, id })))
  const keys = add(freedKeys.map(({ scope, key }) => ({ scope, key: key.toWellFormed() })))
  return `,
    dg as (delete from ${SCHEMA}.graph o using fence, ${graphs} where o.ordinal = x.graph),
    dt as (delete from ${SCHEMA}.task_id o using fence, ${graphs} where o.graph = x.graph),
    df as (delete from ${SCHEMA}.frame o using fence, ${graphs} where o.graph = x.graph),
    di as (delete from ${SCHEMA}.task_id o using fence, json_to_recordset(${ids}::json) x (graph bigint, id text)
      where o.id = x.id and o.graph = x.graph),
    da as (delete from ${SCHEMA}.answer o using fence, json_to_recordset(${keys}::json) x (scope text, key text)
      where o.scope = x.scope and o.key = x.key)`
}

/** Frames that say when these graphs ended say so no more. The statement does not see the frames that it inserts itself. */
function revivals({ revived }: TurnWrites, add: AddParameter): string {
  if (revived.length === 0) return ''
  const graphs = add(`{${revived.map(({ ordinal }) => ordinal).join()}}`)
  return `,
    rv as (update ${SCHEMA}.frame o set ends = false, ended_at = null, tasks = null
      from fence, unnest(${graphs}::bigint[]) x (graph) where o.graph = x.graph and o.ends)`
}

function removalChanges(removals: readonly Removal[], add: AddParameter): string {
  if (removals.length === 0) return ''
  const rows = removals.map(({ seq, graphId: graph_id, tenant, at }) => ({ seq, graph_id, tenant, at }))
  return `,
    rm as (insert into ${SCHEMA}.removal (seq, graph_id, tenant, at)
      select x.* from json_to_recordset(${add(rows)}::json) x (seq bigint, graph_id text, tenant text, at bigint), fence)`
}

/** The number of no graph. */
const NO_GRAPH = 0

/**
 * A result goes with the last task that refers to it. One that no
 * state ever referred to goes with its graph. One that was shared belongs to no graph any more.
 */
function resultChanges({ removed, resultUses }: Pick<TurnWrites, 'removed' | 'resultUses'>, add: AddParameter): string {
  if (removed.length + resultUses.length === 0) return ''
  const results = `${SCHEMA}.result`
  const uses = `json_to_recordset(${add(resultUses.map(([name, change]) => ({ name, change })))}::json) x (name text, change int)`
  return `,
    rs as (update ${results} o set sharers = o.sharers + x.change, graph = ${NO_GRAPH}
      from fence, ${uses} where o.name = x.name and o.sharers + x.change >= 0),
    ru as (delete from ${results} o using fence, ${uses} where o.name = x.name and o.sharers + x.change < 0),
    rg as (delete from ${results} o using fence, unnest(${add(`{${removed.join()}}`)}::bigint[]) g (graph)
      where o.graph = g.graph and not exists (select from ${uses} where x.name = o.name))`
}
