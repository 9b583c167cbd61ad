/**
 * The pauses of types and of the service, in rows that all replicas obey. The pause of a graph is in its frames.
 *
 * A replica that changes a row rings the others, which read all rows: there are few.
 */
import { messageOf, stackOf } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { isPause, type Pause } from '../../rules/pause.ts'
import type { KeptPauses } from '../../task/pauses.ts'
import { CHANNEL, type Database } from './database.ts'
import { Looks } from './looks.ts'
import { readable } from './readable-rows.ts'
import { SCHEMA } from './schema-name.ts'
import { unavailable } from './unavailable.ts'

export interface SharedPausesOptions {
  readonly database: Pick<Database, 'settings' | 'soon'>
  readonly leaseMs: number
  readonly log: Log
}

export class SharedPauses implements KeptPauses {
  readonly #options: SharedPausesOptions
  readonly all = new Map<string, Pause>()
  readonly looks: Looks
  onChange: KeptPauses['onChange'] = () => {}
  /** Changes by this replica that were sent. A look that began before the last of them tells of the past. */
  #sent = 0
  /** The rows of the last look, as JSON. */
  #known = ''

  constructor(options: SharedPausesOptions) {
    const { leaseMs, log } = options
    this.#options = options
    this.looks = new Looks({
      leaseMs,
      look: () => this.look(),
      onAway: (error) => log.debug('cannot look for pauses', { cause: messageOf(error) }),
      onFault: (error) => log.error('pauses are not read', { cause: stackOf(error) }),
    })
  }

  async set(key: string, pause: Pause | undefined): Promise<void> {
    const { database } = this.#options
    this.#sent++
    this.#known = ''
    try {
      await database.soon((sql) => {
        const schema = sql(SCHEMA)
        const settings = sql.unsafe(database.settings)
        const change =
          pause === undefined
            ? sql`delete from ${schema}.pause p using settings where p.key = ${key}`
            : sql`insert into ${schema}.pause (key, payload) select ${key}, ${JSON.stringify(pause)} from settings
                on conflict (key) do update set payload = excluded.payload`
        return sql`with settings as materialized (select ${settings}), change as (${change}) select pg_notify(${CHANNEL}, '')`
      })
    } catch (error) {
      this.looks.ring() // it may have been kept
      throw unavailable(messageOf(error), error)
    } finally {
      this.#sent++
    }
    this.#take(key, pause)
  }

  /** Reads what others have changed. */
  async look(): Promise<void> {
    const sent = this.#sent
    const rows = await this.#options.database.soon(
      (sql) => sql`select key as id, payload as json from ${sql(SCHEMA)}.pause order by key`,
    )
    if (sent !== this.#sent) {
      this.looks.ring()
      return
    }
    const known = JSON.stringify(rows)
    if (known === this.#known) return
    this.#known = known
    const found = new Map<string, Pause>()
    for (const row of rows) {
      const [pause] = readable([row], 'pause', isPause, this.#options.log)
      found.set(row.id, pause ?? { since: 0 }) // what nobody can read stays paused
    }
    for (const key of this.all.keys()) if (!found.has(key)) this.#take(key, undefined)
    for (const [key, pause] of found) this.#take(key, pause)
  }

  #take(key: string, pause: Pause | undefined): void {
    const known = this.all.get(key)
    if (Bun.deepEquals(known, pause)) return
    if (pause === undefined) this.all.delete(key)
    else this.all.set(key, pause)
    if ((known === undefined) !== (pause === undefined)) this.onChange(key)
  }
}
