/**
 * Decides when a start forces a garbage collection while it reads the state file.
 *
 * Each entry leaves garbage of five times the size of its task. Without forced collections the heap would grow to three
 * times the size of the tasks. A full collection takes time in proportion to the heap: about 10 ms for 20,000 tasks,
 * 300 ms for 600,000. So the distance between collections grows with the number of entries. The total time stays
 * linear.
 */

/**
 * Entries before the first collection. A higher number raises the peak of memory. A lower one causes useless
 * collections.
 */
const MIN_ENTRIES = 20_000

export class GcSchedule {
  #entries = 0
  #collectedAt = 0

  /** Counts an entry. Returns whether a collection is due after it. */
  isDue(): boolean {
    this.#entries++
    if (this.#entries - this.#collectedAt < Math.max(MIN_ENTRIES, this.#entries / 2)) return false
    this.#collectedAt = this.#entries
    return true
  }

  /** Whether a collection was due so far. If not, no final collection is needed. */
  get hasCollected(): boolean {
    return this.#collectedAt > 0
  }
}
