/**
 * Makes commits survive a power cut without blocking the event loop.
 *
 * With `synchronous=NORMAL` SQLite commits to its write-ahead log without a sync. This syncs that file, on a thread of
 * the pool, or synchronously before a caller is told of a commit. A sync covers everything committed before it began.
 * SQLite itself syncs before it moves the log into the database, and when it restarts the log.
 */
import { fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncDirectoryNow } from '../../shared/files/atomic-file.ts'

export class WalSync {
  readonly #file: number

  /** The open log, which is written before the database. */
  get fd(): number {
    return this.#file
  }

  /** `path` is that of the database, which must be open and have its log. */
  constructor(path: string) {
    this.#file = openSync(`${path}-wal`, 'r')
    // Syncs the name of the log: without the name the log is lost.
    syncDirectoryNow(dirname(path))
  }

  /** Resolves when all that was committed before the call is on disk. */
  later(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.#file, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** The same, synchronously. */
  now(): void {
    fdatasyncSync(this.#file)
  }
}
