/**
 * Calls to the runtime service that are repeated until each has succeeded, is refused for good, or is too old.
 *
 * Items are tried in rounds, in the order in which they came. An item that is added during a round is tried in it.
 * While the service is away a round ends with the first failure, and the pauses between rounds grow; a new item does
 * not cut such a pause short. The item that failed then comes last: it may be the only one that gets no answer. The owner
 * of a queue writes its items to disk.
 */
import { stackOf } from '../../../shared/contract/errors.ts'
import { GrowingPause } from '../../../shared/http/growing-pause.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { isYieldDue, nextTurn } from '../../../shared/process/steps.ts'

/** `abandoned`: refused permanently. `later`: try again. `away`: the service is unreachable; try all items again. */
export type TryOutcome = 'done' | 'abandoned' | 'later' | 'away'

export interface Retried {
  /** When the item was added; milliseconds since 1970. */
  readonly since: number
}

export interface RetryQueueOptions<T extends Retried> {
  readonly idOf: (item: T) => string
  /** An error is logged and counts as `away`. */
  readonly attempt: (item: T) => Promise<TryOutcome>
  /** Called after each round. `hasChanged`: items have left the queue since the last call. Must not throw. */
  readonly afterRound: (hasChanged: boolean) => void | Promise<void>
  /** Called after each round in which items were given up, with all of them. Must not throw. */
  readonly onGivenUp: (items: readonly T[], cause: 'there are too many of them' | 'it could not be reached') => void
  readonly log: Log
  /** Maximum number of items. Beyond it, the oldest are given up. */
  readonly maxItems: number
  /** Milliseconds after which an item is given up. */
  readonly giveUpAfterMs: number
  /** Attempts at the same time. */
  readonly parallel: number
  /** Milliseconds of the longest pause between two rounds. */
  readonly maxPauseMs: number
}

/** Milliseconds of the shortest pause between two rounds. */
const FIRST_PAUSE_MS = 100

export class RetryQueue<T extends Retried> {
  readonly #options: RetryQueueOptions<T>
  /** In the order in which they are tried. */
  readonly #items = new Map<string, T>()
  /** Items that were given up beyond the maximum, and not reported yet. */
  #excess: T[] = []
  #hasChanged = false
  #isWorking = false
  /** Whether an item was added since the last round began. */
  #hasNew = false
  /** Ends the pause between two rounds, if a new item may do that. */
  #wake: () => void = () => {}

  /** `items` are those of an earlier run. */
  constructor(items: Iterable<T>, options: RetryQueueOptions<T>) {
    this.#options = options
    for (const item of items) this.#items.set(options.idOf(item), item)
  }

  get items(): ReadonlyMap<string, T> {
    return this.#items
  }

  /** Begins with the items of an earlier run. */
  start(): void {
    if (this.#items.size > 0) void this.#work()
  }

  /** Replaces an item of the same id. No attempt is made before the caller's code has ended. */
  add(item: T): void {
    const { idOf, maxItems } = this.#options
    const id = idOf(item)
    this.#items.delete(id) // so that it is the last one, which a round under way comes to
    this.#items.set(id, item)
    if (this.#items.size > maxItems) {
      const [oldestId, oldest] = this.#items.entries().next().value!
      this.#items.delete(oldestId)
      this.#hasChanged = true
      this.#excess.push(oldest)
    }
    this.#hasNew = true
    this.#wake()
    void this.#work()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    try {
      await nextTurn()
      while (this.#items.size > 0) await this.#rounds() // some may have come since the last round
    } catch (error) {
      this.#options.log.error('calls to the runtime service are not repeated', { cause: stackOf(error) })
    } finally {
      this.#isWorking = false
    }
  }

  async #rounds(): Promise<void> {
    const pause = new GrowingPause({ firstMs: FIRST_PAUSE_MS, longestMs: this.#options.maxPauseMs })
    while (this.#items.size > 0) {
      this.#hasNew = false
      const { isAnyDone, isAway } = await this.#round()
      const hasChanged = this.#hasChanged
      this.#hasChanged = false
      await this.#options.afterRound(hasChanged)
      if (this.#items.size === 0) return
      if (isAnyDone) pause.reset()
      await this.#pause(pause.next(), isAway)
      if (this.#hasNew && !isAway) pause.reset()
    }
  }

  /** Tries each item once. Stops if the service is unreachable. */
  async #round(): Promise<{ isAnyDone: boolean; isAway: boolean }> {
    const { parallel, giveUpAfterMs, onGivenUp } = this.#options
    const expired: T[] = []
    let isAnyDone = false
    let isAway = false
    const entries = this.#items.entries() // goes on with those that come meanwhile
    const lane = async () => {
      while (!isAway) {
        const next = entries.next()
        if (next.done) return
        const [id, item] = next.value
        if (Date.now() - item.since > giveUpAfterMs) {
          this.#remove(id, item)
          expired.push(item)
          if (isYieldDue(expired.length)) await nextTurn()
          continue
        }
        const outcome = await this.#attempt(item)
        isAway ||= outcome === 'away'
        isAnyDone ||= outcome === 'done'
        if (outcome === 'done' || outcome === 'abandoned') this.#remove(id, item)
        else if (outcome === 'away' && this.#items.get(id) === item) {
          this.#items.delete(id)
          this.#items.set(id, item)
        }
      }
    }
    await Promise.all(Array.from({ length: parallel }, lane))
    const excess = this.#excess
    this.#excess = []
    if (excess.length > 0) onGivenUp(excess, 'there are too many of them')
    if (expired.length > 0) onGivenUp(expired, 'it could not be reached')
    return { isAnyDone, isAway }
  }

  async #attempt(item: T): Promise<TryOutcome> {
    try {
      return await this.#options.attempt(item)
    } catch (error) {
      this.#options.log.error('a call to the runtime service broke', {
        ...{ handle_id: this.#options.idOf(item), cause: stackOf(error) },
      })
      return 'away' // so that it is tried again after a pause, and is not logged for each of many
    }
  }

  /** Removes the item unless `add` has replaced it meanwhile. */
  #remove(id: string, item: T): void {
    if (this.#items.get(id) !== item) return
    this.#items.delete(id)
    this.#hasChanged = true
  }

  /** A new item ends the pause after the shortest one, unless the service is away. */
  async #pause(ms: number, isAway: boolean): Promise<void> {
    await sleep(FIRST_PAUSE_MS)
    const rest = ms - FIRST_PAUSE_MS
    if (rest <= 0 || (this.#hasNew && !isAway)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, rest)
    timer.unref()
    if (!isAway) this.#wake = resolve
    await promise
    this.#wake = () => {}
    clearTimeout(timer)
  }
}

/** A sleep that does not keep the process alive. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())
