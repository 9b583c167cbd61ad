/**
 * Callbacks in rows. A row is written in the turn after its callback became due, and again once the callback is over. It
 * goes some time after its graph.
 *
 * A replica that takes over delivers what waits, and makes up for what the rows lack (`callbacks.ts`).
 */
import type { Delivery, KeptCallbacks, StoredCallbacks } from '../kept-callbacks.ts'
import type { CallbackState } from './turn-writes.ts'

/** Ids of callbacks that are over are forgotten when so many were added beyond twice those that count. */
const MAX_SPARE = 10_000

export class SharedCallbacks implements KeptCallbacks {
  readonly #write: (callback: CallbackState) => void
  #found: StoredCallbacks = { waiting: new Map(), over: new Map() }
  #added = 0

  /** `write` has a state written in the next turn. */
  constructor(write: (callback: CallbackState) => void) {
    this.#write = write
  }

  /** What the start found in the database. */
  recovered(found: StoredCallbacks): void {
    this.#found = found
  }

  read(): StoredCallbacks {
    return this.#found
  }

  add(delivery: Delivery): void {
    const { id, graphId } = delivery
    this.#write({ id, graphId, delivery })
    this.#added++
  }

  addOver({ id, graphId }: Delivery): void {
    this.#write({ id, graphId, delivery: undefined })
    this.#added++
  }

  mayShrink(count: number): boolean {
    return this.#added > 2 * count + MAX_SPARE
  }

  async rewrite(): Promise<void> {
    this.#added = 0 // the rows go by themselves
  }
}
