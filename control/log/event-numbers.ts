/**
 * Numbers of changes, reserved in blocks in the log, so that no number is used twice, even after a crash.
 *
 * A crash can lose a change whose number a caller has seen. So a note of the log (`notes.ts`) is an upper bound of all numbers
 * used so far, and the next run begins above it. The next block is reserved in the background when half of the current block
 * is left.
 *
 * A change gets its number in `TaskStore.apply` (`task/task-store.ts`).
 */
import { type Notes, NUMBERS_NOTE } from './notes.ts'

/** Numbers of a block. A smaller block would often be followed by another one. */
export const BLOCK = 1_000_000

/** Milliseconds between a failed reservation and the next attempt. */
const RETRY_MS = 5_000

export class EventNumbers {
  /** All numbers of this run are higher. */
  readonly start: number
  readonly #lastSeq: number
  #reserved: number
  #isReserving = false

  /** `lastSeq` is the highest number that recovery found on disk. */
  constructor({ lastSeq, notes }: { readonly lastSeq: number; readonly notes: Notes }) {
    this.#lastSeq = lastSeq
    this.start = Math.max(lastSeq, Number(notes.of('numbers').get(NUMBERS_NOTE) ?? 0))
    this.#reserved = this.start
  }

  /** Resolves when the upper bound is on disk. To be set before the first change. */
  keep: (upTo: number) => Promise<void> = async () => {}

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
    if (seq > this.#reserved - BLOCK / 2 && !this.#isReserving) void this.#reserve(seq + BLOCK)
  }

  async #reserve(upTo: number): Promise<void> {
    this.#isReserving = true
    try {
      await this.keep(upTo)
      this.#reserved = upTo
      this.#isReserving = false
    } catch {
      // The log has told of its disk.
      setTimeout(() => {
        this.#isReserving = false
      }, RETRY_MS).unref()
    }
  }
}
