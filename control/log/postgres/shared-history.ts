/**
 * The history of a replica: its own events, which are in its data directory, and those of other replicas whose graphs it has
 * adopted, which are in the database.
 *
 * The number of an event tells whose it is. Own events are read from the data directory also if their graphs are removed by
 * now, as long as they are kept there.
 */
import type { ServiceEvent } from '../../../shared/contract/events.ts'
import type { EventRange } from '../event-reader.ts'
import type { KeptEvents } from '../keeper.ts'
import { startOf } from '../number-blocks.ts'
import type { PastEvents } from './past-events.ts'

export class SharedHistory {
  readonly #own: KeptEvents['history']
  readonly #past: Pick<PastEvents, 'oldest' | 'read'>
  readonly #blocks: () => readonly number[]
  /** Own events up to this number are read from the database if the data directory has them no more. */
  #recovered: number
  #oldest: number

  /** `blocks`: those of the own numbers, in rising order. */
  constructor(own: KeptEvents['history'], past: Pick<PastEvents, 'oldest' | 'read'>, blocks: () => readonly number[]) {
    this.#own = own
    this.#past = past
    this.#blocks = blocks
    this.#recovered = own.last
    this.#oldest = own.last
  }

  /** A graph was recovered whose changes have numbers up to `seq`. */
  recovered(seq: number): void {
    this.#recovered = Math.max(this.#recovered, seq)
  }

  /** Finds out how far back the events go, at least `maxEvents`. */
  async find(maxEvents: number): Promise<void> {
    this.#oldest = await this.#past.oldest(maxEvents)
  }

  get last(): number {
    return this.#own.last
  }

  /** The history has all events after this number. */
  get oldest(): number {
    return this.#own.oldest > this.#recovered ? this.#own.oldest : this.#oldest
  }

  async *read(range: EventRange): AsyncGenerator<readonly ServiceEvent[]> {
    const { upTo } = range
    let { after } = range
    for (const block of this.#blocks()) {
      const first = Math.min(upTo, Math.max(startOf(block), Math.min(this.#own.oldest, this.#recovered)))
      const last = Math.min(upTo, startOf(block + 1)) // which no event has
      if (after < first) yield* this.#past.read({ ...range, after, upTo: first })
      after = Math.max(after, first)
      const newest = Math.min(last, this.#own.last)
      if (after < newest) yield* this.#own.read({ ...range, after, upTo: newest })
      after = Math.max(after, last)
    }
    if (after < upTo) yield* this.#past.read({ ...range, after })
  }
}
