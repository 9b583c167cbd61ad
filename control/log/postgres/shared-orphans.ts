/**
 * Orphans in rows: abandoned attempts in runtime services, each to be killed by one replica.
 *
 * The row is written with the end of its task, or in an earlier turn, and removed after the kill. A replica kills no attempt
 * before its row is committed: if it was declared dead meanwhile, it would kill an attempt that another replica follows.
 * Living replicas take over the rows of dead ones.
 */
import type { Log } from '../../../shared/logs/log.ts'
import { isOrphan, KeptOrphans, type Orphan, type OrphanState } from '../kept-orphans.ts'
import type { Database } from './database.ts'
import { type JsonRow, readable } from './readable-rows.ts'
import type { ReplicaRows } from './replica-rows.ts'
import { SCHEMA } from './schema-name.ts'
import type { AddParameter } from './turn-writes.ts'

/** Orphans that are taken over with one statement. */
const PORTION = 1_000

export interface SharedOrphansOptions {
  readonly database: Pick<Database, 'settings' | 'soon'>
  readonly replica: Pick<ReplicaRows, 'epoch' | 'id'>
  readonly log: Log
  /** Writes a state in the next turn. */
  readonly write: (orphan: OrphanState) => void
}

export class SharedOrphans extends KeptOrphans {
  readonly #options: SharedOrphansOptions
  /** Whether orphans may have been taken over by a statement whose answer was lost. */
  #isUncertain = false

  constructor(options: SharedOrphansOptions) {
    super(options.write)
    this.#options = options
  }

  /** Takes over orphans of dead replicas. Returns their number. */
  async look(): Promise<number> {
    const isUncertain = this.#isUncertain
    this.#isUncertain = true // until the answer is here
    const taken = await takeOrphans(this.#options)
    const own = isUncertain ? await ownOrphans(this.#options) : taken
    this.#isUncertain = false
    const found = own.filter(({ handle_id }) => !this.orphans.has(handle_id))
    for (const orphan of found) this.orphans.set(orphan.handle_id, orphan)
    if (found.length > 0) this.onFound(found)
    return taken.length
  }
}

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
async function takeOrphans({ database, replica: { id, epoch }, log }: SharedOrphansOptions): Promise<Orphan[]> {
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
async function ownOrphans({ database, replica: { id }, log }: SharedOrphansOptions): Promise<Orphan[]> {
  const rows: JsonRow[] = await database.soon(
    (sql) => sql`select handle_id as id, payload as json from ${sql(SCHEMA)}.orphan where replica = ${id}`,
  )
  return readable(rows, 'orphan', isOrphan, log)
}
