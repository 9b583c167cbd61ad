/**
 * The history of a replica: its own past events, which are in its data directory, behind those of the replicas before it,
 * which are in the database.
 */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { EventHistory } from '../journal/event-history.ts'
import type { EventRange } from '../journal/event-reader.ts'
import type { KeptEvents } from '../journal/keeper.ts'
import type { PastEvents } from './past-events.ts'

export class SharedHistory {
  readonly #own: KeptEvents['history']
  readonly #past: PastEvents
  /** Events up to this number are read from the database. */
  #recovered: number
  #oldest: number

  constructor(own: EventHistory, past: PastEvents) {
    this.#own = own
    this.#past = past
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
    const { after, upTo } = range
    if (after < this.#recovered) yield* this.#past.read({ ...range, upTo: Math.min(upTo, this.#recovered) })
    if (upTo > this.#recovered) yield* this.#own.read({ ...range, after: Math.max(after, this.#recovered) })
  }
}
