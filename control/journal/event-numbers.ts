/**
 * Numbers of changes, reserved in blocks on disk: after a crash none is given twice.
 *
 * A caller may have seen the number of a change that no start finds any more. So `<data-dir>/event-numbers` holds an
 * upper bound of all numbers that may have been seen, and the next run begins above it. The file is replaced long
 * before the numbers of a block are used up, beside the event loop.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/atomic-file.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'

/** Numbers of a block. With fewer, the file is replaced often; with more, nothing gets better. */
export const BLOCK = 1_000_000

/** Milliseconds before a disk that refused a reservation is asked again. */
const RETRY_MS = 5_000

export interface EventNumbersOptions {
  readonly dataDir: string
  /** The highest number that a start has found on disk. */
  readonly lastSeq: number
  readonly log: Log
}

export class EventNumbers {
  readonly #path: string
  readonly #log: Log
  /** The numbers of this run are higher. */
  readonly start: number
  readonly #lastSeq: number
  #reserved: number
  #isReserving = false
  #hasFailed = false

  constructor({ dataDir, lastSeq, log }: EventNumbersOptions) {
    this.#path = join(dataDir, 'event-numbers')
    this.#log = log
    this.#lastSeq = lastSeq
    this.start = Math.max(lastSeq, this.#read())
    this.#reserved = this.start
  }

  /** No number up to this one is ever given again by a later run. */
  get reserved(): number {
    return this.#reserved
  }

  /** An earlier run may have given the number to a change that no start has found. */
  isLost(seq: number): boolean {
    return seq > this.#lastSeq && seq < this.start
  }

  /** Reserves more numbers in time. Called for every number that is given. */
  use(seq: number): void {
    if (seq > this.#reserved - BLOCK / 2 && !this.#isReserving) void this.#reserve(seq + BLOCK)
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

  /** 0 if there is no file, or none of ours: the highest number on disk counts then. */
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
