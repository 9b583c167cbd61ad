/**
 * The state of the disk: whether it takes writes, and who may use the reserve while it does not.
 *
 * The first refused write starts a failure. During a failure the service accepts and starts nothing, and the journal
 * continues in the reserve with outcomes of running tasks, cancels and deletions. The failure ends when the journal was
 * written and the reserve exists again.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import type { DiskReserve } from '../../shared/files/disk-reserve.ts'
import type { Log } from '../../shared/logs/log.ts'

/** Milliseconds between a refused write, for which the reserve was not enough, and the next attempt to write. */
export const RETRY_MS = 500

/** Milliseconds for which the result of a successful probe is reused. */
const PROBE_FRESH_MS = 1_000

export class DiskHealth {
  readonly #reserve: DiskReserve
  readonly #log: Log
  readonly #useReserve: () => boolean
  readonly #onFailure: () => void
  #failure: Error | undefined
  #pausedUntil = 0
  #probedAt = Number.NEGATIVE_INFINITY

  /**
   * `useReserve` lets the journal continue in the reserve, and returns false if there is none. `onFailure` is called
   * after every refused write. It schedules the next attempt to write.
   */
  constructor(reserve: DiskReserve, log: Log, useReserve: () => boolean, onFailure: () => void) {
    this.#reserve = reserve
    this.#log = log
    this.#useReserve = useReserve
    this.#onFailure = onFailure
  }

  /** The error of the refused write; undefined while the disk takes writes. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Whether the disk refused a write less than `RETRY_MS` ago. Another write would most likely fail too. */
  get isPaused(): boolean {
    return Date.now() < this.#pausedUntil
  }

  noteFailure(error: unknown): void {
    if (this.#failure === undefined) {
      const cause = messageOf(error)
      this.#log.error('cannot write the journal: nothing new is taken in or started until it can be', { cause })
    }
    this.#failure = error instanceof Error ? error : new Error(messageOf(error))
    this.#onFailure()
  }

  /** Calls `write`. If that fails, continues in the reserve and calls it once more. Throws the error of the disk. */
  writeWithReserve(write: () => void): void {
    try {
      write()
    } catch (error) {
      this.noteFailure(error)
      this.#pausedUntil = Date.now() + RETRY_MS
      if (!this.#useReserve()) throw error
      write()
      this.#pausedUntil = 0
    }
  }

  /**
   * Called after a successful write. Ends the failure and returns true, if there is one. Throws if the reserve does not
   * fit.
   */
  recover(): boolean {
    if (this.#failure === undefined) return false
    this.#reserve.restore()
    this.#failure = undefined
    this.#log.info('the journal can be written again')
    return true
  }

  /** Tries a write, at most once a second, unless a failure is known. Throws the error of the disk. */
  probe(): void {
    if (this.#failure !== undefined || performance.now() - this.#probedAt < PROBE_FRESH_MS) return
    this.#reserve.probe()
    this.#probedAt = performance.now()
  }
}
