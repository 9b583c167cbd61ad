/**
 * Numbers of changes, reserved in blocks on disk, so that no number is used twice, even after a crash.
 *
 * A crash can lose a change whose number a caller has seen. So `<data-dir>/event-numbers` holds an upper bound of all
 * numbers used so far, and the next run begins above it. The next block is reserved in the background when half of the
 * current block is left.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import { replaceFile } from '../../shared/files/atomic-file.ts'
import type { Log } from '../../shared/logs/log.ts'

/** Numbers of a block. A smaller block would replace the file often. */
export const BLOCK = 1_000_000

/** Milliseconds between a failed reservation and the next attempt. */
const RETRY_MS = 5_000

export interface EventNumbersOptions {
  readonly dataDir: string
  /** The highest number that recovery found on disk. */
  readonly lastSeq: number
  readonly log: Log
}

export class EventNumbers {
  readonly #path: string
  readonly #log: Log
  /** All numbers of this run are higher. */
  readonly start: number
  readonly #lastSeq: number
  #reserved: number
  #isReserving = false
  #reservation: Promise<void> = Promise.resolve()
  #hasFailed = false

  constructor({ dataDir, lastSeq, log }: EventNumbersOptions) {
    this.#path = join(dataDir, 'event-numbers')
    this.#log = log
    this.#lastSeq = lastSeq
    this.start = Math.max(lastSeq, this.#read())
    this.#reserved = this.start
  }

  /** Later runs use higher numbers than this one. */
  get reserved(): number {
    return this.#reserved
  }

  /** Whether an earlier run may have used the number for a change that a crash lost. */
  isLost(seq: number): boolean {
    return seq > this.#lastSeq && seq < this.start
  }

  /** Called for every number that is used. Reserves the next block in time. */
  use(seq: number): void {
    if (seq > this.#reserved - BLOCK / 2 && !this.#isReserving) this.#reservation = this.#reserve(seq + BLOCK)
  }

  /** Resolves when no reservation is being written: a stop leaves no half of one behind. */
  async written(): Promise<void> {
    await this.#reservation
  }

  async #reserve(upTo: number): Promise<void> {
    this.#isReserving = true
    try {
      await replaceFile(this.#path, (file) => file.writeFile(`${upTo}\n`))
      this.#reserved = upTo
      this.#isReserving = false
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed)
        this.#log.warn('cannot reserve numbers of events; it will be tried again', { cause: messageOf(error) })
      this.#hasFailed = true
      setTimeout(() => {
        this.#isReserving = false
      }, RETRY_MS).unref()
    }
  }

  /** Reads the upper bound. Returns 0 if the file is missing or invalid; then the highest number on disk counts. */
  #read(): number {
    let text: string
    try {
      text = readFileSync(this.#path, 'utf8')
    } catch {
      return 0
    }
    if (/^\d{1,15}\n$/.test(text)) return Number(text)
    this.#log.warn('the file of reserved event numbers is not valid and is ignored', { path: this.#path })
    return 0
  }
}
