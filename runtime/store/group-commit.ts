/**
 * Group commit: whatever changes in one turn of the event loop is one transaction with one sync.
 *
 * There are two kinds of changes. A *request* (a task to accept) is durable or refused: when its transaction fails it
 * is undone and its promise rejects, so that nothing is half accepted. A *fact* (a process started, ended) has happened
 * whether the disk likes it or not: it is kept and tried again until it is in.
 *
 * A change is a function that runs its statements when the transaction is open. It may run more than once, each time
 * after what an earlier run did was rolled back, so it must do nothing else.
 */
import type { Database } from 'bun:sqlite'
import { messageOf, ServiceError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'

/** Milliseconds between two tries while the disk takes nothing. Every new request tries at once. */
export const RETRY_MS = 500

/** Milliseconds that a fact which nobody waits for may wait for others to share its sync with. */
const UNHURRIED_MS = 20

interface Change {
  readonly apply: () => void
  readonly isFact: boolean
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** What the disk may say today and take back tomorrow; anything else is a mistake of ours. */
const DISK_FAULTS = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|LOCKED|NOMEM|PERM)/

export class GroupCommit {
  readonly #db: Database
  readonly #log: Log
  #waiting: Change[] = []
  #isScheduled = false
  #unhurried: ReturnType<typeof setTimeout> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #fault: unknown
  /** Called when writes succeed again after a failure. */
  onRecovered: () => void = () => {}

  constructor(db: Database, log: Log) {
    this.#db = db
    this.#log = log
  }

  /** Why nothing can be written at the moment; undefined when all is well. */
  get fault(): unknown {
    return this.#fault
  }

  /** Durable when it resolves; undone when it rejects, with 503 if the disk is to blame. */
  request(apply: () => void): Promise<void> {
    return this.#add(apply, false, true)
  }

  /** Durable when it resolves. Never rejects for the disk's sake. */
  fact(apply: () => void): Promise<void> {
    return this.#add(apply, true, true)
  }

  /** A fact that nobody waits for: it may wait a little for others. */
  unhurriedFact(apply: () => void): void {
    // A mistake of ours was logged where it was found; there is nobody else to tell.
    this.#add(apply, true, false).catch(() => {})
  }

  /** Writes what is waiting now. */
  flush(): void {
    clearTimeout(this.#unhurried)
    this.#unhurried = undefined
    if (this.#waiting.length === 0) return
    const changes = this.#waiting
    this.#waiting = []
    try {
      this.#commit(changes)
    } catch (error) {
      if (isDiskFault(error)) this.#keepFacts(changes, error)
      else this.#oneByOne(changes, error)
      return
    }
    this.#isWritable()
    for (const change of changes) change.resolve()
  }

  #add(apply: () => void, isFact: boolean, isUrgent: boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ apply, isFact, resolve, reject })
    if (isUrgent) this.#schedule()
    else this.#unhurried ??= setTimeout(() => this.flush(), UNHURRIED_MS)
    return promise
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.flush()
    })
  }

  #commit(changes: readonly Change[]): void {
    this.#db.run('begin immediate')
    try {
      for (const { apply } of changes) apply()
      this.#db.run('commit')
    } catch (error) {
      // SQLite rolls back by itself after some faults; then there is no transaction any more.
      if (this.#db.inTransaction) this.#db.run('rollback')
      throw error
    }
  }

  /** One of `changes` is wrong in itself: the others must not suffer for it. */
  #oneByOne(changes: readonly Change[], found: unknown): void {
    for (const change of changes) {
      try {
        this.#commit([change])
      } catch (error) {
        if (isDiskFault(error)) {
          this.#keepFacts([change], error)
          continue
        }
        this.#log.error('a change of the database failed', { cause: messageOf(error), first: messageOf(found) })
        change.reject(error)
        continue
      }
      change.resolve()
    }
  }

  #keepFacts(changes: readonly Change[], error: unknown): void {
    if (this.#fault === undefined) this.#log.error('cannot write the database', { cause: messageOf(error) })
    this.#fault = error
    this.#waiting.unshift(...changes.filter(({ isFact }) => isFact))
    for (const { isFact, reject } of changes) {
      if (!isFact) reject(unavailable(error))
    }
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      if (this.#waiting.length === 0) this.unhurriedFact(() => this.#writeProbe())
      this.flush()
    }, RETRY_MS)
  }

  /** Resolves when something could be written just now; rejects with 503 when not. */
  probe(): Promise<void> {
    return this.request(() => this.#writeProbe())
  }

  #writeProbe(): void {
    this.#db.query('replace into probe (id, written_at) values (1, ?)').run(Date.now())
  }

  #isWritable(): void {
    if (this.#fault === undefined) return
    this.#fault = undefined
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#log.info('the database can be written again')
    this.onRecovered()
  }
}

const isDiskFault = (error: unknown): boolean => DISK_FAULTS.test(String((error as { code?: unknown } | null)?.code))

/** 503: we cannot keep what we would accept. */
export const unavailable = (cause: unknown): ServiceError =>
  new ServiceError(
    503,
    `cannot write to the data directory: ${messageOf(cause)} (free some space or mend the disk, then try again)`,
    { cause },
  )
