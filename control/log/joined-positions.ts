/**
 * The positions of a client in a stream that is joined from several replicas. Pure.
 *
 * A replica first sends the past events that the client lacks: those of dead replicas, then its own. Then it is live, and
 * sends its own events as they happen. The position in the events of a dead replica stays until all replicas are live:
 * until then, any of them may send some of these events.
 */
import { blockOf, startOf } from './number-blocks.ts'
import { MAX_POSITIONS, type Positions, positionsText } from './positions.ts'

export class JoinedPositions {
  readonly #positions: Map<number, number | undefined>
  /** The blocks of each replica. */
  readonly #blocks = new Map<number, Set<number>>()
  readonly #live = new Set<number>()

  constructor(positions: Positions = new Map()) {
    this.#positions = new Map(positions)
  }

  get all(): Positions {
    return this.#positions
  }

  /** The id of an event. Undefined if it would be too long. */
  get text(): string | undefined {
    const { size } = this.#positions
    return size === 0 || size > MAX_POSITIONS ? undefined : positionsText(this.#positions)
  }

  /** Whether a replica has the block that a number is in. */
  isClaimed(block: number): boolean {
    return [...this.#blocks.values()].some((blocks) => blocks.has(block))
  }

  hasBegun(replica: number): boolean {
    return this.#blocks.has(replica)
  }

  isLive(replica: number): boolean {
    return this.#live.has(replica)
  }

  /** These replicas are about to send. The client has no event of those that are newer than its positions. */
  expect(replicas: readonly number[]): void {
    const newest = Math.max(...this.#positions.keys())
    for (const replica of replicas) if (replica > newest) this.#positions.set(replica, startOf(replica))
  }

  /** A replica begins to send. */
  begun(replica: number, blocks: readonly number[]): void {
    this.#live.delete(replica)
    this.#blocks.set(replica, new Set(blocks))
  }

  /** A replica has sent the event with this number. */
  sent(replica: number, seq: number): void {
    const block = blockOf(seq)
    const own = this.#blocks.get(replica)
    if (own === undefined || (!own.has(block) && !this.#live.has(replica))) return
    own.add(block)
    if (this.#live.has(replica)) for (const each of own) if (each < block) this.#positions.delete(each)
    this.#positions.set(block, Math.max(seq, this.#positions.get(block) ?? 0))
  }

  /** A replica has sent all up to this number, and is live. */
  live(replica: number, seq: number): void {
    this.#live.add(replica)
    this.sent(replica, seq)
  }

  /** A replica did not answer. Nobody knows which of its events the client will lack. */
  silent(replica: number): void {
    const blocks = [replica, ...(this.#blocks.get(replica) ?? [])]
    if (!blocks.some((block) => this.#positions.has(block))) this.#positions.set(replica, undefined)
  }

  /** All replicas but `silent` are live and have adopted all graphs of dead ones. Returns whether positions were dropped. */
  settle(silent: readonly number[]): boolean {
    const idle = [...this.#positions.keys()].filter((block) => !this.isClaimed(block) && !silent.includes(block))
    for (const block of idle) this.#positions.delete(block)
    return idle.length > 0
  }
}
