/**
 * Group commit: whatever changes in one turn of the event loop, or while the disk syncs, is one transaction with one sync.
 *
 * There are two kinds of changes. A *request* (a task to accept) is durable or refused: when its transaction or its sync
 * fails it is undone and its promise rejects, so that nothing is half accepted. A *fact* (a process started, ended) has
 * happened whether the disk likes it or not: it is kept and tried again until it is in.
 *
 * What a failed sync has lost no later sync brings back, however well that goes. So everything is written elsewhere then:
 * SQLite moves its log into the database and syncs that.
 *
 * Once the data directory is lost (`directory-guard.ts`) nothing is written any more: requests are refused, and facts wait
 * for ever, as only the next service can say what is kept.
 *
 * A change is a function that runs its statements when the transaction is open. It may run more than once, each time
 * after what an earlier run did was rolled back, so it must do nothing else.
 */
import type { Database } from 'bun:sqlite'
import { messageOf, ServiceError, systemCodeOf } from '../../shared/errors.ts'
import { DataDirectoryLost } from '../../shared/held-directory.ts'
import type { Log } from '../../shared/log.ts'
import type { DirectoryGuard } from './directory-guard.ts'
import type { Sync } from './wal-sync.ts'

/** Milliseconds between two tries while the disk takes nothing. Every new request tries at once. */
export const RETRY_MS = 500

/** Milliseconds that a fact which nobody waits for may wait: the next one often makes it needless. */
const UNHURRIED_MS = 20

interface Change {
  readonly apply: () => void
  /** Of a request: takes back what was committed. Absent for a fact. */
  readonly undo?: (() => void) | undefined
  /** Called when what `undo` did is durable. Must not throw. */
  readonly undone?: (() => void) | undefined
  /** Work that can be done while the disk syncs: called once it is committed, before the promise resolves. Must not throw. */
  readonly meanwhile?: (() => void) | undefined
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** The disk has not taken it, and is to be asked again. */
  hasFailed?: true
}

export type RequestHooks = Pick<Change, 'meanwhile' | 'undone'>

interface UnhurriedChange extends Change {
  readonly isMoot: () => boolean
}

/** What the disk may say today and take back tomorrow; anything else is a mistake of ours. */
const DISK_FAULTS = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|LOCKED|NOMEM|PERM|PROTOCOL|CORRUPT|NOTADB)/

/** One of them that may be of a single page: whoever does not touch that goes on. */
const DAMAGE = /^SQLITE_CORRUPT/

export class GroupCommit {
  readonly #db: Database
  readonly #sync: Sync
  readonly #directory: Pick<DirectoryGuard, 'look' | 'lost'>
  readonly #log: Log
  #waiting: Change[] = []
  /** Those that nobody waits for. */
  #unhurried: UnhurriedChange[] = []
  /** Committed; a power cut would still lose them. */
  #unsynced: Change[] = []
  /** Those that the sync under way is for. */
  #syncing: readonly Change[] | undefined
  /** A sync has failed: what the log holds is not to be relied on. */
  #isLogDistrusted = false
  #isScheduled = false
  #unhurriedTimer: ReturnType<typeof setTimeout> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #fault: unknown
  /** Called when writes succeed again after a failure. */
  onRecovered: () => void = () => {}

  constructor(db: Database, sync: Sync, directory: Pick<DirectoryGuard, 'look' | 'lost'>, log: Log) {
    this.#db = db
    this.#sync = sync
    this.#directory = directory
    this.#log = log
  }

  /** Why nothing can be written at the moment; undefined when all is well. */
  get fault(): unknown {
    return this.#directory.lost ?? this.#fault
  }

  /**
   * Durable when it resolves; undone when it rejects, with 503 if the disk is to blame. `undo` takes back what `apply` did,
   * if that was committed; on a failing disk that may be done, and `undone` called, long after.
   */
  request(apply: () => void, undo: () => void, { meanwhile, undone }: RequestHooks = {}): Promise<void> {
    return this.#add({ apply, undo, undone, meanwhile })
  }

  /** Durable when it resolves. Never rejects for the disk's sake. */
  fact(apply: () => void, meanwhile?: () => void): Promise<void> {
    return this.#add({ apply, meanwhile })
  }

  /** A fact that nobody waits for: it may wait a little, and is left out if it is moot by then. */
  unhurriedFact(apply: () => void, isMoot = () => false): void {
    // A mistake of ours is logged where it is found; there is nobody else to tell.
    this.#unhurried.push({ apply, isMoot, resolve: () => {}, reject: () => {} })
    this.#unhurriedTimer ??= setTimeout(() => this.flush(), UNHURRIED_MS)
  }

  /** Commits all that has changed. */
  flush(): void {
    clearTimeout(this.#unhurriedTimer)
    this.#unhurriedTimer = undefined
    this.#waiting.push(...this.#unhurried.filter(({ isMoot }) => !isMoot()))
    this.#unhurried = []
    this.#flushUrgent()
  }

  #flushUrgent(): void {
    if (this.#waiting.length === 0) return
    const changes = this.#waiting
    this.#waiting = []
    const lost = this.#directory.look()
    if (lost !== undefined) {
      this.#waiting = changes.filter(({ undo }) => undo === undefined)
      refuse(changes, lost)
      return
    }
    try {
      this.#commit(changes)
    } catch (error) {
      if (isDiskFault(error) && !isDamage(error)) this.#keepFacts(changes, error)
      else this.#oneByOne(changes, error)
      return
    }
    this.#committed(changes)
  }

  /** Makes all that has changed durable now, as far as the disk lets us: before somebody is told of it. */
  settle(): void {
    this.flush()
    if (this.#unsynced.length === 0 && this.#syncing === undefined) return
    if (this.#isLogDistrusted) {
      this.#moveLog()
      return
    }
    const changes = this.#unsynced
    this.#unsynced = []
    try {
      this.#sync.now()
    } catch (error) {
      this.#syncFailed(changes, error)
      return
    }
    this.#synced(changes)
  }

  #add(change: Pick<Change, 'apply' | 'undo' | 'undone' | 'meanwhile'>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ ...change, resolve, reject })
    this.#schedule()
    return promise
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      // Whoever comes meanwhile has to wait for the next sync anyway, and shares one transaction until then.
      if (this.#syncing === undefined) this.#flushUrgent()
    })
  }

  #committed(changes: readonly Change[]): void {
    this.#unsynced.push(...changes)
    if (this.#isLogDistrusted) this.#moveLog()
    else this.#syncLater()
    for (const { meanwhile } of changes) meanwhile?.()
  }

  #syncLater(): void {
    if (this.#syncing !== undefined || this.#unsynced.length === 0) return
    const changes = this.#unsynced
    this.#syncing = changes
    this.#unsynced = []
    const done = (fault: unknown) => {
      this.#syncing = undefined
      if (fault === undefined) this.#synced(changes)
      else this.#syncFailed(changes, fault)
      this.#flushUrgent()
      if (!this.#isLogDistrusted) this.#syncLater()
    }
    // Of several syncs under way only one is told of a fault.
    this.#sync.later().then(() => done(this.#isLogDistrusted ? this.#fault : undefined), done)
  }

  #synced(changes: readonly Change[]): void {
    const lost = this.#directory.look()
    if (lost !== undefined) {
      this.#takeBack(changes)
      refuse(changes, lost)
      return
    }
    this.#isWritable()
    for (const change of changes) change.resolve()
  }

  /** Undoes requests in the database of a lost directory: a service that is started on it later must not know them. */
  #takeBack(changes: readonly Change[]): void {
    const undoing = changes.flatMap(({ undo }) => (undo === undefined ? [] : { apply: undo }))
    if (undoing.length === 0) return
    try {
      this.#commit(undoing)
    } catch (error) {
      this.#log.error('cannot take back what was refused', { cause: messageOf(error) })
    }
  }

  #syncFailed(changes: readonly Change[], error: unknown): void {
    this.#isLogDistrusted = true
    this.#unsynced.unshift(...changes)
    this.#refuseRequests(error)
    this.#waitForDisk(error)
    // What was refused must be gone before anybody looks; that moves the log, too.
    if (this.#waiting.length > 0) this.flush()
    else this.#moveLog()
  }

  /** Takes back requests that were committed and cannot be promised. */
  #refuseRequests(error: unknown): void {
    for (const { undo, undone = () => {}, reject } of this.#unsynced) {
      if (undo === undefined) continue
      this.#waiting.push({ apply: undo, resolve: undone, reject: () => {} })
      reject(unavailable(error))
    }
    this.#unsynced = this.#unsynced.filter(({ undo }) => undo === undefined)
  }

  /** Has SQLite write what its log holds into the database, and sync that. */
  #moveLog(): void {
    try {
      const { busy } = this.#db.query<{ busy: number }, []>('pragma wal_checkpoint(restart)').get()!
      if (busy !== 0) throw new Error('the database is being read by somebody else')
    } catch (error) {
      this.#refuseRequests(error)
      this.#waitForDisk(error)
      return
    }
    this.#isLogDistrusted = false
    const changes = this.#unsynced
    this.#unsynced = []
    this.#synced(changes)
  }

  #commit(changes: readonly Pick<Change, 'apply'>[]): void {
    this.#db.query('begin immediate').run() // prepared once, unlike with `db.run`
    try {
      for (const { apply } of changes) apply()
      this.#db.query('commit').run()
    } catch (error) {
      // SQLite rolls back by itself after some faults; then there is no transaction any more.
      if (this.#db.inTransaction) this.#db.run('rollback')
      throw error
    }
  }

  /** One of `changes` is wrong in itself: the others must not suffer for it, nor come in another order. */
  #oneByOne(changes: readonly Change[], found: unknown): void {
    const damaged: Change[] = []
    for (const [i, change] of changes.entries()) {
      try {
        this.#commit([change])
      } catch (error) {
        if (isDamage(error)) {
          damaged.push(change)
          continue
        }
        if (isDiskFault(error)) {
          this.#keepFacts([...damaged, ...changes.slice(i)], error)
          return
        }
        this.#log.error('a change of the database failed', { cause: messageOf(error), first: messageOf(found) })
        change.reject(error)
        continue
      }
      this.#committed([change])
    }
    if (damaged.length > 0) this.#keepFacts(damaged, found)
  }

  #keepFacts(changes: readonly Change[], error: unknown): void {
    const facts = changes.filter(({ undo }) => undo === undefined)
    for (const fact of facts) fact.hasFailed = true
    this.#waiting.unshift(...facts)
    this.#waitForDisk(error)
    refuse(changes, error)
  }

  #waitForDisk(error: unknown): void {
    if (this.#fault === undefined) this.#log.error('cannot write the database', { cause: messageOf(error) })
    this.#fault = error
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      if (this.#waiting.length === 0) this.unhurriedFact(() => this.#writeProbe())
      this.flush()
    }, RETRY_MS)
  }

  /** Resolves when something could be written just now; rejects with 503 when not. */
  probe(): Promise<void> {
    return this.request(
      () => this.#writeProbe(),
      () => {},
    )
  }

  #writeProbe(): void {
    this.#db.query('replace into probe (id, written_at) values (1, ?)').run(Date.now())
  }

  /** Something was written: all is well, unless something else is not, which was tried while that was under way. */
  #isWritable(): void {
    if (this.#fault === undefined || this.#waiting.some(({ hasFailed }) => hasFailed)) return
    this.#fault = undefined
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#log.info('the database can be written again')
    this.onRecovered()
  }
}

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code)
const isDiskFault = (error: unknown): boolean => DISK_FAULTS.test(codeOf(error))
const isDamage = (error: unknown): boolean => DAMAGE.test(codeOf(error))

/** Answers the requests among `changes` with 503. */
function refuse(changes: readonly Change[], error: unknown): void {
  for (const { undo, reject } of changes) {
    if (undo !== undefined) reject(unavailable(error))
  }
}

/** 503: we cannot keep what we would accept. */
export function unavailable(cause: unknown): ServiceError {
  const message = messageOf(cause)
  if (cause instanceof DataDirectoryLost) return new ServiceError(503, message, { cause })
  const isMissing = ['ENOENT', 'ENOTDIR'].includes(systemCodeOf(cause) ?? '')
  const remedy = isMissing ? 'restart the service' : 'free some space or mend the disk, then try again'
  return new ServiceError(503, `cannot write to the data directory: ${message} (${remedy})`, { cause })
}
