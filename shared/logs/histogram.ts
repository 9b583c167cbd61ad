/** Counts of values in buckets, for a metric. */
import { histogramSamples, type Sample } from './prometheus.ts'

/** Upper bounds in seconds, from the cost of a process to an hour. */
export const TASK_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 3_600]

export class Histogram {
  readonly #bounds: readonly number[]
  /** One for each bound, and one for the values above all of them. */
  readonly #counts: number[]
  #sum = 0

  /** `bounds` ascend. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  add(value: number): void {
    let bucket = 0
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += value
  }

  samples(labels?: Sample['labels']): Sample[] {
    return histogramSamples(this.#bounds, this.#counts, this.#sum, labels)
  }
}
