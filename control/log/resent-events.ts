/**
 * The past events to send to a client that lacks some of a dead replica. Pure.
 *
 * The client may have newer events of the same graphs, because the replica that adopted a graph sends on at once. These are
 * sent again with the same numbers, so that no older state comes last. Events before the first one that the client lacks of
 * a graph are not sent.
 */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { blockOf, type NumberBlocks, startOf } from './number-blocks.ts'
import type { Owed, OwedRange } from './positions.ts'

export class ResentEvents {
  readonly #owed: Owed
  readonly #blocks: NumberBlocks
  /** By block: what the client lacks. */
  readonly #missed: ReadonlyMap<number, OwedRange>
  /** Graphs with an event that the client lacked. */
  readonly #changed = new Set<string>()

  constructor(owed: Owed, blocks: NumberBlocks) {
    this.#owed = owed
    this.#blocks = blocks
    this.#missed = new Map(owed.inherited.map((range) => [blockOf(range.after), range]))
  }

  /** The ranges to read, in rising order. Ask `takes` about all events of a range before the next one. */
  *ranges(): Generator<OwedRange> {
    const { own, adopted } = this.#blocks
    for (const block of [...new Set([...own, ...adopted])].sort((a, b) => a - b)) {
      const missed = this.#missed.get(block)
      if (this.#changed.size === 0) {
        if (missed !== undefined) yield missed
        continue
      }
      const last = startOf(block + 1) - 1
      const range = { after: startOf(block), upTo: own.includes(block) ? Math.min(last, this.#owed.after) : last }
      if (range.after < range.upTo) yield range
    }
  }

  /** Whether the client gets the event. To be asked in the order of `ranges`. */
  takes(event: ServiceEvent): boolean {
    const graphId = 'graph_id' in event ? event.graph_id : undefined
    const missed = this.#missed.get(blockOf(event.seq))
    if (missed === undefined || event.seq <= missed.after) return this.#changed.has(graphId ?? '')
    if (graphId !== undefined) this.#changed.add(graphId)
    return true
  }
}
