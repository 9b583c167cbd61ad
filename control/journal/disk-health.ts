/**
 * Whether the disk takes writes, and the use of the reserve while it does not.
 *
 * The first refused write starts a failure: nothing new is accepted or started, and the space of the reserve serves for
 * the outcomes of running tasks. The failure ends when the journal can be written and the reserve has its space again.
 */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { DiskReserve } from './disk-reserve.ts'

/** Milliseconds before a disk that refused a write, even with the space of the reserve, is asked again. */
export const RETRY_MS = 500

/** Milliseconds for which one successful probe answers all further ones. */
const PROBE_FRESH_MS = 1_000

export class DiskHealth {
  readonly #reserve: DiskReserve
  readonly #log: Log
  readonly #onFailure: () => void
  #failure: Error | undefined
  #pausedUntil = 0
  #probedAt = Number.NEGATIVE_INFINITY

  /** `onFailure` is called for every refused write, so that it is repeated later. */
  constructor(reserve: DiskReserve, log: Log, onFailure: () => void) {
    this.#reserve = reserve
    this.#log = log
    this.#onFailure = onFailure
  }

  /** The error of the refused write; undefined while the disk takes writes. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** The disk refused a write a moment ago. To ask it again at once would only take time. */
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

  /** Calls `write`, and again with the space of the reserve if the disk refuses. Throws the error of the disk. */
  writeWithReserve(write: () => void): void {
    try {
      write()
    } catch (error) {
      this.noteFailure(error)
      this.#pausedUntil = Date.now() + RETRY_MS
      if (!this.#reserve.release()) throw error
      write()
      this.#pausedUntil = 0
    }
  }

  /**
   * Ends a failure, after a successful write. Throws if the disk lacks space for the reserve. Returns whether one
   * ended.
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
