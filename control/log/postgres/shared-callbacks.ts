/**
 * Callbacks in rows. A row is written in the turn after its callback became due, and again once the callback is over. It
 * goes some time after its graph.
 *
 * A replica that takes over delivers what waits, and makes up for what the rows lack (`callbacks.ts`).
 */
import type { SQL } from 'bun'
import type { Log } from '../../../shared/logs/log.ts'
import { type CallbackState, isDelivery, type StoredCallbacks } from '../kept-callbacks.ts'
import { type JsonRow, readable } from './readable-rows.ts'
import { SCHEMA } from './schema-name.ts'
import type { AddParameter } from './turn-writes.ts'

/** Part of the statement of a turn, after its `fence`. `replica` delivers the callbacks. */
export function callbackChanges(callbacks: readonly CallbackState[], replica: number, add: AddParameter): string {
  if (callbacks.length === 0) return ''
  const rows = callbacks.map(({ id, graphId: graph_id, delivery }) => {
    return { id, graph_id, delivery: delivery === undefined ? null : JSON.stringify(delivery) }
  })
  return `,
    cb as (insert into ${SCHEMA}.callback (id, graph_id, replica, delivery)
      select x.id, x.graph_id, ${add(replica)}, x.delivery
      from json_to_recordset(${add(rows)}::json) x (id text, graph_id text, delivery text), fence
      on conflict (id) do update set delivery = excluded.delivery, replica = excluded.replica)`
}

/**
 * Gives `replica` the callbacks of these graphs, and those that replicas which are gone had for removed graphs. Returns
 * them, with the ids of callbacks of these graphs that are over. A locked row is left out: its session may have no end.
 */
export async function takeCallbacks(
  sql: SQL,
  settings: string,
  replica: number,
  graphIds: readonly string[],
  log: Log,
): Promise<StoredCallbacks> {
  const schema = sql(SCHEMA)
  const ids = sql.array([...graphIds], 'TEXT')
  const taken: JsonRow[] = await sql`
    with settings as materialized (select ${sql.unsafe(settings)}),
    waiting as (
      select c.id from ${schema}.callback c
      where c.delivery is not null and (c.graph_id = any(${ids})
        or (not exists (select from ${schema}.replica r where r.id = c.replica and r.state = 'live')
          and not exists (select from ${schema}.graph g where g.graph_id = c.graph_id)))
      for update skip locked)
    update ${schema}.callback c set replica = ${replica} from settings, waiting w where c.id = w.id
    returning c.id, c.delivery as json`
  const over: { id: string; graph_id: string }[] = await sql`
    select id, graph_id from ${schema}.callback where delivery is null and graph_id = any(${ids})`
  return {
    waiting: new Map(readable(taken, 'callback', isDelivery, log).map((delivery) => [delivery.id, delivery])),
    over: new Map(over.map(({ id, graph_id }) => [id, graph_id])),
  }
}

/** Removes callbacks that are over, of graphs that are gone. */
export async function sweepCallbacks(sql: SQL, settings: string): Promise<void> {
  const schema = sql(SCHEMA)
  await sql`
    with settings as materialized (select ${sql.unsafe(settings)})
    delete from ${schema}.callback c using settings
    where c.delivery is null and not exists (select from ${schema}.graph g where g.graph_id = c.graph_id)`
}
