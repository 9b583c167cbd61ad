/** The rows of orphans: what a turn writes, and what a replica takes over from those that are gone. */
import type { Log } from '../../../shared/logs/log.ts'
import { isOrphan, type Orphan } from '../orphan-file.ts'
import type { Database } from './database.ts'
import { type JsonRow, readable } from './readable-rows.ts'
import type { ReplicaRows } from './replica-rows.ts'
import { SCHEMA } from './schema-name.ts'
import type { AddParameter } from './turn-parameters.ts'
import type { OrphanState } from './turn-writes.ts'

/** Orphans that are taken over with one statement. */
const PORTION = 1_000

/** Part of the statement of a turn, after its `fence`. `replica` ends the attempts. */
export function orphanChanges(orphans: readonly OrphanState[], replica: number, add: AddParameter): string {
  if (orphans.length === 0) return ''
  const rows = orphans.map(({ id, orphan }) => ({
    ...{ handle_id: id.toWellFormed(), payload: orphan === undefined ? null : JSON.stringify(orphan) },
  }))
  const changed = `json_to_recordset(${add(rows)}::json) x (handle_id text, payload text)`
  const owner = add(replica)
  return `,
    oa as (insert into ${SCHEMA}.orphan (handle_id, replica, payload)
      select x.handle_id, ${owner}, x.payload from ${changed}, fence where x.payload is not null
      on conflict (handle_id) do update set payload = excluded.payload, replica = excluded.replica),
    oo as (delete from ${SCHEMA}.orphan o using fence, ${changed}
      where x.payload is null and o.handle_id = x.handle_id and o.replica = ${owner})`
}

/** Gives some orphans of dead replicas to this one. If several replicas try, each orphan goes to one of them. */
export async function takeOrphans(
  database: Pick<Database, 'settings' | 'soon'>,
  { id, epoch }: Pick<ReplicaRows, 'epoch' | 'id'>,
  log: Log,
): Promise<Orphan[]> {
  const rows: JsonRow[] = await database.soon((sql) => {
    const schema = sql(SCHEMA)
    return sql`
      with settings as materialized (select ${sql.unsafe(database.settings)}),
      portion as (
        select o.handle_id from ${schema}.orphan o
        where not exists (select from ${schema}.replica r where r.id = o.replica and r.state = 'live')
        limit ${PORTION} for update skip locked)
      update ${schema}.orphan o set replica = ${id} from portion p, ${schema}.replica r
      where o.handle_id = p.handle_id and r.id = ${id} and r.epoch = ${epoch} and r.state = 'live'
        and (select count(*) from settings) = 1
      returning o.handle_id as id, o.payload as json`
  })
  return readable(rows, 'orphan', isOrphan, log)
}

/** All orphans that this replica is to end. */
export async function ownOrphans(
  database: Pick<Database, 'soon'>,
  { id }: Pick<ReplicaRows, 'id'>,
  log: Log,
): Promise<Orphan[]> {
  const rows: JsonRow[] = await database.soon(
    (sql) => sql`select handle_id as id, payload as json from ${sql(SCHEMA)}.orphan where replica = ${id}`,
  )
  return readable(rows, 'orphan', isOrphan, log)
}
