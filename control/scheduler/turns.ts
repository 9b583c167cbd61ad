/**
 * Works in turns that leave time for I/O.
 *
 * A turn takes steps until nothing is left to do or its time is over. Then it yields to I/O and continues. A request
 * for a turn during a step does not start a second turn.
 */

/** Maximum milliseconds of a turn. */
const TURN_MS = 5

/** Steps between two readings of the clock. */
const STEPS_PER_LOOK = 32

export class Turns {
  readonly #step: () => boolean
  readonly #onError: (error: unknown) => void
  #isTurning = false
  #isScheduled = false
  #isStopped = false

  /** `step` does a small part of the work. It returns false when none is left. If it throws, the turn ends. */
  constructor(step: () => boolean, onError: (error: unknown) => void) {
    this.#step = step
    this.#onError = onError
  }

  take(): void {
    if (this.#isTurning || this.#isStopped) return
    this.#isTurning = true
    let isDone = true
    try {
      isDone = this.#work()
    } catch (error) {
      this.#onError(error)
    } finally {
      this.#isTurning = false
    }
    if (!isDone && !this.#isScheduled) {
      this.#isScheduled = true
      setImmediate(() => {
        this.#isScheduled = false
        this.take()
      })
    }
  }

  /** Takes no turn while `act` runs, and one after it. */
  after(act: () => void): void {
    const wasTurning = this.#isTurning
    this.#isTurning = true
    try {
      act()
    } finally {
      this.#isTurning = wasTurning
    }
    this.take()
  }

  /** Takes no more turns. */
  stop(): void {
    this.#isStopped = true
  }

  /** Returns true when no work is left, false when the time of the turn is up. */
  #work(): boolean {
    const until = performance.now() + TURN_MS
    while (performance.now() < until) {
      for (let step = 0; step < STEPS_PER_LOOK; step++) if (!this.#step()) return true
    }
    return false
  }
}
