/**
 * Makes what was committed survive a power cut, without holding up the event loop.
 *
 * SQLite commits with `synchronous=NORMAL`: into its write-ahead log, unsynced. Here that file is synced, by a thread of
 * the pool, or at once where somebody is to be told of it now. Everything committed before a sync began is on disk when
 * it is done. SQLite itself syncs before it moves the log into the database, and when it begins the log anew.
 */
import { fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncDirectoryNow } from '../../shared/atomic-file.ts'

/** What `GroupCommit` needs of it. */
export interface Sync {
  /** Resolves when all that was committed before the call is on disk. */
  later(): Promise<void>
  /** The same before it returns. */
  now(): void
}

export class WalSync implements Sync {
  readonly #file: number

  /** The open log: changes go to it first. */
  get fd(): number {
    return this.#file
  }

  /** `path` is that of the database, which is open and has its log. */
  constructor(path: string) {
    this.#file = openSync(`${path}-wal`, 'r')
    // A log whose name is lost is lost.
    syncDirectoryNow(dirname(path))
  }

  later(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.#file, (error) => (error ? reject(error) : resolve()))
    })
  }

  now(): void {
    fdatasyncSync(this.#file)
  }
}
