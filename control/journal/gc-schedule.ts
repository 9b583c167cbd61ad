/**
 * When a start collects garbage while it reads the state file.
 *
 * Each entry becomes garbage five times the size of its task; left to itself the heap would grow to three times what is
 * kept of it. The time of a full collection grows with the heap: about 10 ms for 20,000 tasks, 300 ms for 600,000. So
 * the collections are further apart the more was read, and all of them together take time linear in the entries.
 */

/** Entries before the first collection. More: a higher peak. Fewer: collections that free little. */
const MIN_ENTRIES = 20_000

export class GcSchedule {
  #entries = 0
  #collectedAt = 0

  /** Counts one more entry; whether a collection is due after it. */
  isDue(): boolean {
    this.#entries++
    if (this.#entries - this.#collectedAt < Math.max(MIN_ENTRIES, this.#entries / 2)) return false
    this.#collectedAt = this.#entries
    return true
  }

  /** Whether any collection was due: only a large start is worth a last one. */
  get hasCollected(): boolean {
    return this.#collectedAt > 0
  }
}
