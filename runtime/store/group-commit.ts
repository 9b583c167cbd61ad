/**
 * Group commit: all changes of one turn of the event loop, or of the time of a sync, share one transaction and one
 * sync.
 *
 * There are two kinds of changes. A *request*, such as a task to accept, is durable or refused.
 * If its transaction or its sync fails, the change is undone and its promise rejects. A *fact*, such as the end of a
 * process, has happened even if the disk does not take it. It is kept and retried until it is written.
 *
 * On a full disk the end of a task uses the disk reserve (`shared/files/disk-reserve.ts`), not before: a task that still runs
 * could take its space. From then on requests are refused until the reserve exists again.
 *
 * A later sync does not write the data that a failed sync has lost, even if it succeeds. So after a failure SQLite
 * moves its log into the database and syncs that.
 *
 * Once the data directory is lost (`directory-guard.ts`), nothing is written. Requests are refused, and facts wait for
 * ever, because only the next service can know what is kept.
 */
import type { Database } from 'bun:sqlite'
import { messageOf } from '../../shared/contract/errors.ts'
import type { DiskReserve } from '../../shared/files/disk-reserve.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { DirectoryGuard } from '../files/directory-guard.ts'
import { isDamage, isDiskFault, unavailable } from '../files/disk-fault.ts'
import type { WalSync } from './wal-sync.ts'

/** Milliseconds between two attempts while the disk takes nothing. Every new request attempts at once. */
export const RETRY_MS = 500

/** Milliseconds that a fact nobody waits for is held back: the next one often makes it unnecessary. */
const HELD_BACK_MS = 20

/** A request or a fact on its way to the disk. */
interface PendingChange {
  /** Runs the statements of the change. Called again after a rollback, so it must do nothing else. */
  readonly apply: () => void
  /** Undoes a committed change. Only requests have it. */
  readonly undo?: (() => void) | undefined
  /** Called when the effect of `undo` is durable. Must not throw. */
  readonly undone?: (() => void) | undefined
  /** Work to do during the sync: called after the commit, before the promise resolves. Must not throw. */
  readonly meanwhile?: (() => void) | undefined
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** Whether the change may use the disk reserve. */
  readonly usesReserve?: boolean | undefined
  /** Whether the disk refused the change, which has to be written again. */
  hasFailed?: true
}

/** What a `GroupCommit` stands on. */
export interface Disk {
  readonly db: Database
  readonly sync: Sync
  readonly directory: Pick<DirectoryGuard, 'look' | 'lost'>
  readonly reserve: Pick<DiskReserve, 'release' | 'restore'>
  readonly log: Log
}

/** What a `GroupCommit` asks of a `WalSync`. */
export type Sync = Pick<WalSync, 'later' | 'now'>

export class GroupCommit {
  readonly #db: Database
  readonly #sync: Sync
  readonly #directory: Disk['directory']
  readonly #reserve: Disk['reserve']
  readonly #log: Log
  /** Whether the reserve was released and does not exist again. */
  #isReserveUsed = false
  #waiting: PendingChange[] = []
  /** Facts that nobody waits for. */
  #unhurried: { readonly apply: () => void; readonly isMoot: () => boolean }[] = []
  #unhurriedDue: ReturnType<typeof setTimeout> | undefined
  /** Committed but not synced: a power cut would lose them. */
  #unsynced: PendingChange[] = []
  /** The changes that the current sync covers. */
  #syncing: readonly PendingChange[] | undefined
  /** A sync has failed, so the content of the log cannot be relied on. */
  #isLogDistrusted = false
  #isScheduled = false
  #retry: ReturnType<typeof setTimeout> | undefined
  #fault: unknown
  #recovered = Promise.withResolvers<void>()

  constructor({ db, sync, directory, reserve, log }: Disk) {
    this.#db = db
    this.#sync = sync
    this.#directory = directory
    this.#reserve = reserve
    this.#log = log
  }

  /** Why nothing can be written at the moment. Undefined when all is well. */
  get fault(): unknown {
    return this.#directory.lost ?? this.#fault
  }

  /** Resolves when writes succeed again after the next failure, or after the present one. */
  get recovered(): Promise<void> {
    return this.#recovered.promise
  }

  /**
   * Durable when it resolves. Undone when it rejects, with 503 if the disk is to blame. `undo` takes back a committed
   * `apply`. On a failing disk that may happen long after the rejection; then `undone` is called.
   */
  request(
    apply: () => void,
    undo: () => void,
    { undone, usesReserve }: Pick<PendingChange, 'undone' | 'usesReserve'> = {},
  ): Promise<void> {
    return this.#add({ apply, undo, undone, usesReserve })
  }

  /** Durable when it resolves. Never rejects because of the disk. */
  fact(
    apply: () => void,
    { meanwhile, usesReserve }: Pick<PendingChange, 'meanwhile' | 'usesReserve'> = {},
  ): Promise<void> {
    return this.#add({ apply, meanwhile, usesReserve })
  }

  /** A fact that nobody waits for. It may be held back a little, and is dropped if `isMoot` by then. */
  unhurriedFact(apply: () => void, isMoot = () => false): void {
    this.#unhurried.push({ apply, isMoot })
    this.#unhurriedDue ??= setTimeout(() => this.flush(), HELD_BACK_MS)
  }

  /** Commits all pending changes. */
  flush(): void {
    clearTimeout(this.#unhurriedDue)
    this.#unhurriedDue = undefined
    for (const { apply, isMoot } of this.#unhurried.splice(0)) {
      // A defect of ours is logged where it is found.
      if (!isMoot()) this.#waiting.push({ apply, resolve: () => {}, reject: () => {} })
    }
    this.#flushUrgent()
  }

  #flushUrgent(): void {
    if (this.#waiting.length === 0) return
    const changes = this.#hasReserve() ? this.#waiting.splice(0) : this.#takeForReserve()
    if (changes.length === 0) return
    const lost = this.#directory.look()
    if (lost !== undefined) {
      this.#waiting = factsOf(changes)
      refuse(changes, lost)
      return
    }
    try {
      inTransaction(this.#db, changes)
    } catch (error) {
      if (isDiskFault(error) && !isDamage(error)) this.#keepFacts(changes, error)
      else this.#oneByOne(changes, error)
      return
    }
    this.#committed(changes)
  }

  /** Makes all pending changes durable now, as far as the disk allows, before a caller is told of them. */
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

  #add(change: Omit<PendingChange, 'resolve' | 'reject'>): Promise<void> {
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
      // Changes that arrive during a sync have to wait for the next one anyway, and share a transaction until then.
      if (this.#syncing === undefined) this.#flushUrgent()
    })
  }

  #committed(changes: readonly PendingChange[]): void {
    this.#unsynced.push(...changes)
    if (!this.#isLogDistrusted) this.#syncLater()
    for (const { meanwhile } of changes) meanwhile?.()
    if (this.#isLogDistrusted) this.#moveLog()
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
    // If several syncs are under way, only one reports the fault.
    this.#sync.later().then(() => done(this.#isLogDistrusted ? this.#fault : undefined), done)
  }

  #synced(changes: readonly PendingChange[]): void {
    const lost = this.#directory.look()
    if (lost !== undefined) {
      this.#takeBack(changes)
      refuse(changes, lost)
      return
    }
    this.#isWritable()
    for (const change of changes) change.resolve()
  }

  /** Undoes requests in the database of a lost directory, so that a service which opens it later does not know them. */
  #takeBack(changes: readonly PendingChange[]): void {
    const undoing = changes.flatMap(({ undo }) => (undo === undefined ? [] : { apply: undo }))
    if (undoing.length === 0) return
    try {
      inTransaction(this.#db, undoing)
    } catch (error) {
      this.#log.error('cannot take back what was refused', { cause: messageOf(error) })
    }
  }

  #syncFailed(changes: readonly PendingChange[], error: unknown): void {
    this.#isLogDistrusted = true
    this.#unsynced.unshift(...changes)
    this.#refuseRequests(error)
    this.#waitForDisk(error)
    // Refused requests must be gone before anybody reads. Flushing moves the log, too.
    if (this.#waiting.length > 0) this.flush()
    else this.#moveLog()
  }

  /** Takes back requests that were committed but cannot be promised. */
  #refuseRequests(error: unknown): void {
    for (const { undo, undone = () => {}, reject } of this.#unsynced) {
      if (undo === undefined) continue
      this.#waiting.push({ apply: undo, resolve: undone, reject: () => {} })
      reject(unavailable(error))
    }
    this.#unsynced = factsOf(this.#unsynced)
  }

  /** Makes SQLite move its log into the database, and sync that. */
  #moveLog(): void {
    try {
      const { busy } = this.#db.query<{ busy: number }, []>('pragma wal_checkpoint(restart)').get()!
      if (busy !== 0) throw new Error('the database is being read by somebody else')
    } catch (error) {
      this.#refuseRequests(error)
      this.#waitForDisk(error)
      this.#flushUrgent() // a kill from now on must not leave what was refused
      return
    }
    this.#isLogDistrusted = false
    const changes = this.#unsynced
    this.#unsynced = []
    this.#synced(changes)
  }

  /** One of `changes` is faulty. The others are committed one by one, in their order. */
  #oneByOne(changes: readonly PendingChange[], found: unknown): void {
    const damaged: PendingChange[] = []
    for (const [i, change] of changes.entries()) {
      try {
        inTransaction(this.#db, [change])
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

  #keepFacts(changes: readonly PendingChange[], error: unknown): void {
    const isReserveReleased = changes.some(({ usesReserve }) => usesReserve) && this.#reserve.release()
    if (isReserveReleased) this.#isReserveUsed = true
    const kept = changes.filter((change) => isFact(change) || (isReserveReleased && change.usesReserve))
    for (const change of kept) change.hasFailed = true
    this.#waiting.unshift(...kept)
    this.#waitForDisk(error)
    refuse(
      changes.filter((change) => !kept.includes(change)),
      error,
    )
    if (isReserveReleased) this.#flushUrgent()
  }

  /** Takes the changes that the reserve is for. Refuses the other requests; the other facts wait, so nothing new starts. */
  #takeForReserve(): readonly PendingChange[] {
    const others = this.#waiting.filter(({ usesReserve }) => !usesReserve)
    const taken = this.#waiting.filter(({ usesReserve }) => usesReserve)
    this.#waiting = factsOf(others)
    refuse(others, this.#fault)
    return taken
  }

  /** Creates a used reserve again, if the disk has space for it. */
  #hasReserve(): boolean {
    if (!this.#isReserveUsed) return true
    try {
      this.#reserve.restore()
      this.#isReserveUsed = false
      return true
    } catch (error) {
      this.#waitForDisk(error)
      return false
    }
  }

  #waitForDisk(error: unknown): void {
    if (this.#fault === undefined) this.#log.error('cannot write the database', { cause: messageOf(error) })
    this.#fault = error
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      // A probe would use up the space of the reserve.
      if (this.#waiting.length === 0 && this.#hasReserve()) this.unhurriedFact(() => this.#writeProbe())
      this.flush()
    }, RETRY_MS)
  }

  /** Resolves when something could just be written. Rejects with 503 otherwise. */
  probe(): Promise<void> {
    return this.request(
      () => this.#writeProbe(),
      () => {},
    )
  }

  #writeProbe(): void {
    this.#db.query('replace into probe (id, written_at) values (1, ?)').run(Date.now())
  }

  /** A write succeeded. All is well, unless another change failed meanwhile. */
  #isWritable(): void {
    if (this.#fault === undefined || this.#waiting.some(({ hasFailed }) => hasFailed) || !this.#hasReserve()) return
    this.#fault = undefined
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#log.info('the database can be written again')
    this.#recovered.resolve()
    this.#recovered = Promise.withResolvers()
  }
}

/** Commits all `changes`, or none and throws. `apply` runs the statements of a change. */
function inTransaction(db: Database, changes: readonly { readonly apply: () => void }[]): void {
  db.query('begin immediate').run() // prepared once, unlike with `db.run`
  try {
    for (const { apply } of changes) apply()
    db.query('commit').run()
  } catch (error) {
    // SQLite rolls back by itself after some faults. Then the transaction has ended.
    if (db.inTransaction) db.run('rollback')
    throw error
  }
}

const isFact = ({ undo }: PendingChange): boolean => undo === undefined

const factsOf = (changes: readonly PendingChange[]): PendingChange[] => changes.filter(isFact)

/** Answers the requests among `changes` with 503. */
function refuse(changes: readonly PendingChange[], error: unknown): void {
  for (const { undo, reject } of changes) {
    if (undo !== undefined) reject(unavailable(error))
  }
}
