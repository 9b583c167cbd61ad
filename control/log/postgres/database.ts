/**
 * The database as one server that is sometimes away.
 *
 * A query that fails because the server is away, silent or a standby is repeated on the next address. So whatever is
 * repeated here must be safe to repeat.
 */
import type { SQL } from 'bun'
import { UsageError } from '../../../shared/contract/errors.ts'
import { GrowingPause } from '../../../shared/http/growing-pause.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { type DatabaseFault, databaseFault, silentFault } from './database-fault.ts'
import type { DatabaseUrl } from './database-url.ts'
import { Servers } from './servers.ts'
import { keptVersion, makeTables, SCHEMA_VERSION } from './shared-schema.ts'
import { ANSWER_WITHIN_MS } from './unavailable.ts'

/** Pauses between two tries of a query. */
const PAUSES = { firstMs: 20, longestMs: 1_000 }

const OLDEST_VERSION = 130_000

/** A unique value is in use elsewhere. Nothing was written. */
export class InUse extends Error {
  override name = 'InUse'
}

/** The name under which replicas ring. Rings may get lost. */
export const CHANNEL = 'taskmill'

/** Rings with this are only about places of groups of graphs. */
export const PLACES = 'places'

/** Rings with this are only about schedules. */
export const SCHEDULES = 'schedules'

/** Milliseconds after which the server ends a change of a frozen replica, which would hold up those of the others. */
const MAX_IDLE_MS = 2_000
export const NO_IDLING = `set_config('idle_in_transaction_session_timeout', '${MAX_IDLE_MS}', true)`

export interface DatabaseOptions {
  /** The primary and its standbys. */
  readonly urls: readonly DatabaseUrl[]
  /** Milliseconds for an answer of the database. */
  readonly answerMs: number
  readonly log: Log
  /** Called when a replica has rung, and when rings may have got lost. */
  readonly onRing?: (about?: string) => void
}

export interface RepeatOptions {
  /** Whether a failed query may be repeated now. Default: always. */
  readonly mayRepeat?: () => boolean
  /** Whether a fault may pass. Default: `mayPass`. */
  readonly passes?: (fault: DatabaseFault) => boolean
  /** Called with each fault after which the query is repeated. */
  readonly onFault?: (fault: DatabaseFault) => void
  /** Milliseconds that a try may take beyond those of other queries. Default: 0. */
  readonly extraMs?: number
}

export class Database {
  /** For a select that comes first in each transaction that writes. */
  readonly settings: string
  readonly #log: Log
  readonly #servers: Servers
  #isClosed = false

  constructor(options: DatabaseOptions) {
    const { onRing } = options
    this.#log = options.log
    this.#servers = new Servers({ ...options, ...(onRing && { onOpened: (sql) => listen(sql, onRing) }) })
    this.settings = this.#servers.settings
  }

  /**
   * Makes or migrates the tables. Rejects with a `DatabaseFault`, after `timeoutMs` if it may pass, or with `UsageError`
   * for a database that would lose what it has confirmed. A migration of large tables has these milliseconds for itself.
   */
  async open(timeoutMs: number): Promise<void> {
    const limit = within(timeoutMs)
    const version = await this.repeat(async (sql) => {
      await assertDurable(sql)
      return await keptVersion(sql)
    }, limit)
    if (version === SCHEMA_VERSION) return
    this.#log.info('the tables of the database are made or migrated', { version, wanted: SCHEMA_VERSION })
    await this.repeat((sql) => makeTables(sql, this.settings), { ...limit, extraMs: timeoutMs })
  }

  /** Runs `work` once. */
  once<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#servers.use(work)
  }

  /** Runs `work` for a caller who waits, at most `limitMs` milliseconds. What is still under way then is forgotten. */
  async soon<T>(work: (sql: SQL) => Promise<T>, limitMs = ANSWER_WITHIN_MS): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    let last: DatabaseFault | undefined
    const timer = setTimeout(() => reject(last ?? silentFault(limitMs)), limitMs)
    const onFault = (fault: DatabaseFault) => {
      last = fault
    }
    const working = this.repeat(work, { ...within(limitMs), onFault })
    working.catch(() => {}) // perhaps nobody waits any more
    try {
      return await Promise.race([working, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Repeats `work` while it fails for a reason that may pass. Rejects with `InUse`, or with a `DatabaseFault`. */
  async repeat<T>(
    work: (sql: SQL) => Promise<T>,
    { mayRepeat = () => true, passes = mayPass, onFault, extraMs = 0 }: RepeatOptions = {},
  ): Promise<T> {
    const pauses = new GrowingPause(PAUSES)
    for (;;) {
      try {
        return await this.#servers.use(work, extraMs)
      } catch (error) {
        if (error instanceof Settled || error instanceof UsageError) throw error
        const fault = databaseFault(error)
        if (fault.kind === 'in-use') throw new InUse(fault.message, { cause: fault })
        if (!passes(fault) || this.#isClosed || !mayRepeat()) throw fault
        onFault?.(fault)
        await Bun.sleep(pauses.next())
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#servers.close()
  }
}

/** Without it, the looks at intervals remain. */
function listen(sql: SQL, onRing: (about?: string) => void): void {
  sql.listen(CHANNEL, onRing, () => onRing()).catch(() => {})
}

/** An error of `work` itself, which no repetition changes. */
export class Settled extends Error {}

/** Throws `UsageError` for a server that confirms what a crash would undo. */
async function assertDurable(sql: SQL): Promise<void> {
  const [row] =
    await sql`select current_setting('fsync') as fsync, current_setting('server_version_num')::int as version`
  if (row.fsync === 'off')
    throw new UsageError('the database runs with fsync = off: a crash would lose accepted graphs')
  if (row.version < OLDEST_VERSION) throw new UsageError('the database is older than PostgreSQL 13')
}

/** Repeats a query for at most `ms` milliseconds. */
export function within(ms: number): Pick<RepeatOptions, 'mayRepeat'> {
  const until = performance.now() + ms
  return { mayRepeat: () => performance.now() < until }
}

/** Faults that pass: the query is repeated. */
const PASSES: ReadonlySet<DatabaseFault['kind']> = new Set([
  ...(['away', 'silent', 'stranded', 'read-only', 'too-many-connections', 'full', 'contended'] as const),
])

/** Whether a query may succeed later that failed with `fault`. */
export const mayPass = ({ kind }: DatabaseFault): boolean => PASSES.has(kind)

/** Faults of rights and addresses: at a start they are mistakes, and later somebody changes them and changes them back. */
const CHANGED: ReadonlySet<DatabaseFault['kind']> = new Set([
  ...(['wrong-password', 'not-allowed', 'no-database', 'no-tls', 'untrusted'] as const),
])

/** As `mayPass`, for a replica whose queries have succeeded before. */
export const mayPassAgain = (fault: DatabaseFault): boolean => mayPass(fault) || CHANGED.has(fault.kind)
