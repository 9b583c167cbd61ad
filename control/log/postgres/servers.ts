/**
 * Connections to whichever server of the database takes writes.
 *
 * A pool goes to one server. Before its first query, that server must say that it is no standby. When the server is away,
 * silent or read-only, the pool is closed with all its queries, and the next query opens one to the next server that takes
 * writes. So after a failover the first query fails, and the second one succeeds.
 *
 * Nothing is repeated here: only the caller knows whether a query that may have been executed can be.
 *
 * Bun has no time limit for queries, so each has a timer here. A query that ends by it may hang at the server for ever: a
 * commit waits for a synchronous standby that is gone, and nothing of ours ends that. So whoever opens a pool first counts
 * the queries of this process that are still executed there. With `MAX_STRANDED` of them the server gets no further one.
 * Otherwise the tries of one query would use up the connections of the server within minutes.
 */
import type { SQL } from 'bun'
import type { Log } from '../../../shared/logs/log.ts'
import { DatabaseFault, databaseFault, silentFault } from './database-fault.ts'
import type { DatabaseUrl } from './database-url.ts'
import { closeSql, openSql } from './sql-client.ts'

/** Connections of a replica: one for turns, the others for look-ups. */
const MAX_CONNECTIONS = 4

/** Queries of this process that may hang at a server before no further one is sent there. */
export const MAX_STRANDED = 3

/**
 * Part of the time for an answer that a query may wait for locks. The server ends the query then, and its connection is
 * free again. A later try waits for the locks of an earlier one that hangs.
 */
const LOCKS_PER_ANSWER = 0.5

export interface ServersOptions {
  /** The primary and its standbys, in any order. */
  readonly urls: readonly DatabaseUrl[]
  /** Milliseconds for an answer of the database. */
  readonly answerMs: number
  readonly log: Log
  /** Called with each new pool whose connections are not shared by a pooler. */
  readonly onOpened?: (sql: SQL) => void
}

export class Servers {
  /** For a select that comes first in each transaction that writes. */
  readonly settings: string
  readonly #options: ServersOptions
  readonly #applicationName = `taskmill ${crypto.randomUUID().slice(0, 13)}`
  #next = 0
  #pool: Promise<SQL> | undefined
  #isClosed = false

  constructor(options: ServersOptions) {
    this.#options = options
    this.settings = settingsOf(Math.ceil(options.answerMs * LOCKS_PER_ANSWER))
  }

  /** Runs `work`, which may take `extraMs` longer than others. Throws `DatabaseFault`, and whatever else `work` throws. */
  async use<T>(work: (sql: SQL) => Promise<T>, extraMs = 0): Promise<T> {
    const pool = this.#open()
    const sql = await pool
    try {
      return await this.#inTime(work(sql), extraMs)
    } catch (error) {
      const fault = databaseFault(error)
      if (USELESS.has(fault.kind)) this.#discard(pool, sql, fault)
      throw error
    }
  }

  /** Ends all connections at once. Queries under way reject, and all later ones. */
  async close(): Promise<void> {
    this.#isClosed = true
    const sql = await this.#pool?.catch(() => undefined)
    this.#pool = undefined
    if (sql !== undefined) await closeSql(sql)
  }

  #open(): Promise<SQL> {
    if (this.#isClosed) return Promise.reject(new DatabaseFault('away', 'the connections are closed', undefined))
    if (this.#pool !== undefined) return this.#pool
    const pool = this.#openAny()
    this.#pool = pool
    pool.catch(() => {
      if (this.#pool === pool) this.#pool = undefined
    })
    return pool
  }

  /** A pool to the first server, from the next one on, that takes writes. */
  async #openAny(): Promise<SQL> {
    const { urls } = this.#options
    let worst: DatabaseFault | undefined
    for (let i = 0; i < urls.length; i++) {
      const url = urls[this.#next]!
      try {
        return await this.#openTo(url)
      } catch (error) {
        const fault = databaseFault(error)
        fault.place = url.place
        // A server that refuses says more about what is wrong than one that is away.
        if (worst === undefined || worst.isAmbiguous) worst = fault
        this.#skip(fault)
      }
    }
    throw worst ?? new DatabaseFault('away', 'no server is named', undefined)
  }

  async #openTo(url: DatabaseUrl): Promise<SQL> {
    const { answerMs } = this.#options
    const applicationName = this.#applicationName
    const sql = openSql(url, { max: MAX_CONNECTIONS, connectTimeoutMs: answerMs, applicationName })
    try {
      const [row] = await this.#inTime(sql.unsafe(STATE, [applicationName]))
      if (row.is_standby) throw new DatabaseFault('read-only', `${url.shown} is a standby`, undefined)
      if (row.stranded < MAX_STRANDED) {
        if (url.isPreparing) this.#options.onOpened?.(sql)
        return sql
      }
      throw new DatabaseFault('stranded', `${row.stranded} earlier queries hang at ${url.shown}`, undefined)
    } catch (error) {
      void closeSql(sql)
      throw error
    }
  }

  async #inTime<T>(work: PromiseLike<T>, extraMs = 0): Promise<T> {
    const answerMs = Math.ceil(this.#options.answerMs + extraMs)
    const { promise: silence, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(silentFault(answerMs)), answerMs)
    try {
      return await Promise.race([work, silence])
    } finally {
      clearTimeout(timer)
    }
  }

  #discard(pool: Promise<SQL>, sql: SQL, fault: DatabaseFault): void {
    void closeSql(sql)
    if (this.#pool !== pool) return // another query of this pool has failed before
    this.#pool = undefined
    this.#skip(fault)
  }

  #skip(fault: DatabaseFault): void {
    const { urls, log } = this.#options
    this.#next = (this.#next + 1) % urls.length
    if (this.#isClosed) return
    const server = urls[this.#next]!.shown
    log.debug('the database is asked at another address', { cause: fault.message, server })
  }
}

/** Faults after which another server, or another connection, is asked. */
const USELESS: ReadonlySet<DatabaseFault['kind']> = new Set(['away', 'silent', 'read-only'])

/** The commit waits for the disk and for synchronous standbys. The settings end with the transaction. */
const settingsOf = (lockTimeoutMs: number): string => `
  set_config('lock_timeout', '${lockTimeoutMs}', true),
  case when current_setting('synchronous_commit') = 'remote_apply' then ''
    else set_config('synchronous_commit', 'on', true) end`

const STATE = `
select pg_is_in_recovery() as is_standby,
  (select count(*)::int from pg_stat_activity
    where application_name = $1 and state = 'active' and pid <> pg_backend_pid()) as stranded`
