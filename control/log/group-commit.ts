/**
 * Group commit: callers that wait for the disk at the same time share one sync. Syncs do not block the event loop. The journal
 * says what is written before them (`journal.ts`).
 *
 * A sync starts in the next turn of the event loop, after the loop has read all sockets that are ready. Otherwise the
 * first of 32 requests that arrive together would get a sync of its own, and the others would wait for it. If the turn
 * takes longer than a sync, the sync starts at once. On a fast disk it then ends before the turn does (6 % more graphs
 * per second with 32 clients). Callers that arrive during a sync share the next one.
 */
import { nextTurn } from '../../shared/process/steps.ts'

/** A caller that waits until its change is on disk. */
export interface Waiter {
  resolve(): void
  reject(error: unknown): void
}

export interface Committer {
  /** Called before each sync. Writes buffered changes and calls `GroupCommit.join` for their callers. */
  prepare(): void
  /** Syncs everything written so far. */
  sync(): Promise<void>
  /** A sync failed. Returns further callers to reject with the same error. */
  syncFailed(error: unknown): readonly Waiter[]
}

/** Assumed duration of the first sync, in milliseconds. */
const FIRST_SYNC_MS = 1

/** Factor by which the estimate may grow with each measurement. Measurements include delays of the event loop. */
const MAX_SLOWDOWN = 1.1

export class GroupCommit {
  readonly #committer: Committer
  #waiting: Waiter[] = []
  #isSyncing = false
  /** When the first caller of the next sync arrived; undefined while there is none or a sync runs. */
  #collectingSince: number | undefined
  /** Estimated duration of a sync in milliseconds. */
  #syncMs = FIRST_SYNC_MS

  constructor(committer: Committer) {
    this.#committer = committer
  }

  /** Resolves when everything written before this call is on disk. Rejects when the sync fails. */
  wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.schedule()
    })
  }

  /** Adds callers to the next sync. Their changes have just been written. */
  join(waiters: readonly Waiter[]): void {
    for (const waiter of waiters) this.#waiting.push(waiter)
  }

  /** Ensures that a sync starts soon. */
  schedule(): void {
    if (this.#isSyncing) return
    if (this.#collectingSince === undefined) {
      this.#collectingSince = performance.now()
      setImmediate(() => this.#start())
    } else if (performance.now() - this.#collectingSince > this.#syncMs) this.#start()
  }

  #start(): void {
    if (this.#collectingSince === undefined) return // `schedule` has started the sync already
    this.#collectingSince = undefined
    this.#isSyncing = true
    void this.#syncWaiting()
  }

  async #syncWaiting(): Promise<void> {
    for (;;) {
      this.#committer.prepare()
      if (this.#waiting.length === 0) break
      const served = this.#waiting
      this.#waiting = []
      try {
        const begin = performance.now()
        await this.#committer.sync()
        this.#syncMs = Math.min(performance.now() - begin, this.#syncMs * MAX_SLOWDOWN)
        for (const { resolve } of served) resolve()
      } catch (error) {
        const others = this.#committer.syncFailed(error)
        for (const { reject } of [...served, ...this.#waiting, ...others]) reject(error)
        this.#waiting = []
      }
    }
    this.#isSyncing = false
  }

  /** Resolves once no sync runs or is scheduled. */
  async whenIdle(): Promise<void> {
    while (this.#isSyncing || this.#collectingSince !== undefined) await nextTurn()
  }
}
