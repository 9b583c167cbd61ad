/** The state of runtime services that replicas share: the pool, and the orphans. */
import { messageOf, ServiceError, stackOf } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { type PoolState, UNCHANGED } from '../../rules/pool-state.ts'
import type { PoolKeeper } from '../pool-file.ts'
import { type Database, NO_IDLING } from './database.ts'
import { Looks } from './looks.ts'
import { changePool, type KeptPool, readPool } from './runtime-rows.ts'
import { SharedOrphans, type SharedOrphansOptions } from './shared-orphans.ts'
import { unavailable } from './unavailable.ts'

export interface SharedRuntimesOptions extends SharedOrphansOptions {
  readonly leaseMs: number
}

export class SharedRuntimes {
  readonly pool: SharedPool
  readonly orphans: SharedOrphans
  readonly looks: Looks

  constructor(options: SharedRuntimesOptions) {
    const { database, leaseMs, log } = options
    this.pool = new SharedPool(database, log)
    this.orphans = new SharedOrphans(options)
    this.looks = new Looks({
      leaseMs,
      look: async () => {
        await this.pool.look()
        const orphans = await this.orphans.look()
        if (orphans > 0) log.info('attempts that are to be ended were taken over', { attempts: orphans })
      },
      onAway: (error) => log.debug('cannot look for changes of the runtime services', { cause: messageOf(error) }),
      onFault: (error) => log.error('changes of the runtime services are not read', { cause: stackOf(error) }),
    })
  }
}

/**
 * The pool of runtime services in rows, which all replicas share. A change is made in one transaction, on what is there by
 * then. Others are rung, and read it.
 */
export class SharedPool implements PoolKeeper {
  readonly #database: Pick<Database, 'settings' | 'soon'>
  readonly #log: Log
  #kept: KeptPool = { version: -1, state: UNCHANGED }
  onChange: () => void = () => {}
  /** Called with the number of changes of schedules so far, which the same look reads. */
  onScheduleChanges: (changes: number) => void = () => {}

  constructor(database: Pick<Database, 'settings' | 'soon'>, log: Log) {
    this.#database = database
    this.#log = log
  }

  get state(): PoolState {
    return this.#kept.state
  }

  async change(make: (state: PoolState) => PoolState): Promise<void> {
    const { settings } = this.#database
    let wanted: PoolState | undefined
    let kept: KeptPool | ServiceError
    try {
      kept = await this.#database.soon((sql) =>
        sql.begin(async (transaction) => {
          await transaction.unsafe(`select ${settings}, ${NO_IDLING}`)
          return await changePool(transaction, this.#log, (state) => {
            // The answer to an earlier try got lost, and it was committed.
            if (wanted !== undefined && Bun.deepEquals(contentOf(state), contentOf(wanted))) return state
            wanted = make(state)
            return wanted
          }).catch(refusalIn)
        }),
      )
    } catch (error) {
      throw unavailable(messageOf(error), error)
    }
    if (kept instanceof ServiceError) throw kept
    this.#take(kept)
  }

  /** Reads what others have changed. */
  async look(): Promise<void> {
    const { version } = this.#kept
    const { pool, scheduleChanges } = await this.#database.soon((sql) => readPool(sql, version, this.#log))
    if (pool !== undefined) this.#take(pool)
    this.onScheduleChanges(scheduleChanges)
  }

  /** An answer may come late. */
  #take(kept: KeptPool): void {
    if (kept.version <= this.#kept.version) return
    this.#kept = kept
    this.onChange()
  }
}

/** A refusal by `make` is no fault of the database, and wrote nothing. */
function refusalIn(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  throw error
}

/** The comparable content: rows lack the labels of removed runtime services, and have an order of their own. */
const contentOf = ({ added, draining, removed, losses }: PoolState): object => ({
  ...{ added, draining: [...draining].toSorted(([a], [b]) => (a < b ? -1 : 1)), losses: Object.fromEntries(losses) },
  removed: removed.map(({ name, url }) => `${name} ${url}`).sort(),
})
