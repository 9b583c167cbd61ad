/** How long turns take, as counts of a histogram. */

/** Seconds. A turn takes a round trip and a commit: some milliseconds, and more while a server fails over. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export class TurnTimes {
  /** One for each bound, and one for longer turns. */
  readonly #counts: number[] = BOUNDS.map(() => 0).concat(0)
  /** Seconds. */
  #sum = 0

  get histogram() {
    return { bounds: BOUNDS, counts: this.#counts, sum: this.#sum }
  }

  add(seconds: number): void {
    const bucket = BOUNDS.findIndex((bound) => seconds <= bound)
    this.#counts[bucket < 0 ? BOUNDS.length : bucket]!++
    this.#sum += seconds
  }
}
