/**
 * How much all connections together receive in one turn of the event loop.
 *
 * The kernel hands over half a megabyte for each socket at once. A thousand fast connections would keep requests and other
 * tasks waiting for a second. Beyond a bound, no socket is read until the next turn. The sockets go round: one that has
 * received is not read again before all others of its round had their turn, because the kernel may name the same ones
 * first each time.
 */

/** Bytes in one turn. The read that goes beyond it is the last one. */
export const MAX_TURN_BYTES = 8 * 1024 * 1024

/** Sockets that are read again in one turn. Each takes a call of the kernel. */
export const RESUMED_IN_TURN = 512

/** A socket that is read, or not for now. */
export interface Paced {
  /** Stops or starts reading. */
  readonly hold: () => void
  readonly release: () => void
}

export class Pace {
  readonly #reading = new Set<Paced>()
  /** The readers that have received in this turn. */
  readonly #served = new Set<Paced>()
  /** The connections that wait to be read: in this round, and in the next one. */
  #round = new Set<Paced>()
  #nextRound = new Set<Paced>()
  readonly #nextTurn: (work: () => void) => void
  #received = 0
  #isTurnDue = false

  constructor(nextTurn: (work: () => void) => void = setImmediate) {
    this.#nextTurn = nextTurn
  }

  /** Adds a socket that is being read. */
  opened(paced: Paced): void {
    this.#reading.add(paced)
  }

  /** Starts reading, now or when there is room. */
  resume(paced: Paced): void {
    if (this.#reading.has(paced) || this.#round.has(paced)) return
    if (this.#received < MAX_TURN_BYTES && !this.#hasWaiting) this.#release(paced)
    else this.#nextRound.add(paced)
  }

  /** Forgets a socket that is not read any more. */
  remove(paced: Paced): void {
    for (const set of [this.#reading, this.#served, this.#round, this.#nextRound]) set.delete(paced)
  }

  /** Counts what a socket has received. */
  count(paced: Paced, bytes: number): void {
    if (this.#reading.has(paced)) this.#served.add(paced)
    this.#received += bytes
    this.#expectTurn()
    if (this.#received < MAX_TURN_BYTES) return
    for (const one of this.#reading) {
      one.hold()
      if (this.#served.has(one)) this.#nextRound.add(one)
      else this.#round.add(one)
    }
    this.#reading.clear()
  }

  get #hasWaiting(): boolean {
    return this.#round.size > 0 || this.#nextRound.size > 0
  }

  #release(paced: Paced): void {
    this.#reading.add(paced)
    paced.release()
  }

  #expectTurn(): void {
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    this.#nextTurn(() => this.#turn())
  }

  #turn(): void {
    this.#isTurnDue = false
    this.#received = 0
    this.#served.clear()
    if (this.#round.size === 0) [this.#round, this.#nextRound] = [this.#nextRound, this.#round]
    let left = RESUMED_IN_TURN
    for (const paced of this.#round) {
      if (left-- === 0) break
      this.#round.delete(paced)
      this.#release(paced)
    }
    if (this.#hasWaiting) this.#expectTurn()
  }
}
