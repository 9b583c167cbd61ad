/**
 * How long this replica owns its graphs for certain, and what follows once it has lost them.
 *
 * Each turn that was committed says that it had the lease when the turn began. Once that is longer ago than the lease,
 * nothing is answered, started or killed before the next turn. If another replica has taken the lease, this one promises
 * nothing any more, and its service ends (`service.ts`).
 */

export class Lease {
  readonly ms: number
  /** When the last turn that was committed began. */
  #confirmedAt = now()
  /** Since then, turns have followed one another without a gap of half a lease. */
  #steadySince = now()
  #isLost = false
  /** Called once, when another replica has taken the lease: the service must end. */
  onLost: (why: string) => void = () => {}

  /** `ms`: milliseconds for which a turn that was committed is good. */
  constructor(ms: number) {
    this.ms = ms
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** Milliseconds since the beginning of the last turn that was committed. */
  get ageMs(): number {
    return now() - this.#confirmedAt
  }

  /** Milliseconds for which this replica owns its graphs for certain. */
  get leftMs(): number {
    return Math.max(0, this.ms - this.ageMs)
  }

  /** Milliseconds for which the database has not been away. */
  get steadyMs(): number {
    return this.#isLost || this.#hasGap ? 0 : now() - this.#steadySince
  }

  get #hasGap(): boolean {
    return this.ageMs > this.ms / 2
  }

  /** A turn that began at `beganAt`, by `now`, was committed. */
  confirm(beganAt: number): void {
    if (this.#hasGap) this.#steadySince = beganAt
    this.#confirmedAt = beganAt
  }

  lose(why: string): void {
    this.#isLost = true
    this.onLost(why)
  }
}

/** Monotonic time in milliseconds that goes on while the machine sleeps, as far as the system tells. */
export const now = (): number => Math.max(Date.now(), performance.timeOrigin + performance.now())
