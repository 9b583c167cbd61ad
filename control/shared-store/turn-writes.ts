/**
 * What a replica writes in one turn.
 *
 * Turns follow one another. A turn is one statement and one commit. It also checks that no other replica has taken over,
 * and renews the lease.
 */
import type { KeptKey, SentKey } from '../journal/idempotency.ts'

/** A graph that is submitted. */
export interface NewGraph {
  /** Its number, which no other graph of any replica has. */
  readonly ordinal: number
  readonly id: string
  /** The graph as a frame of the journal has it. */
  readonly payload: string
  /** Ids of its tasks that no other live graph may have. Empty for a scoped graph. */
  readonly taskIds: readonly string[]
  readonly key: KeptKey | undefined
}

/** States of tasks of one graph, or the list of a task with `for_each`. */
export interface NewFrame {
  readonly ordinal: number
  /** Frames of a graph are in the order of these numbers. */
  readonly number: number
  readonly payload: string
}

export interface TurnWrites {
  readonly graphs: readonly NewGraph[]
  readonly frames: readonly NewFrame[]
  /** Numbers of graphs whose rows are removed. */
  readonly removed: readonly number[]
  /** Ids of tasks that their graphs, given by number, have no more. */
  readonly freedIds: readonly (readonly [ordinal: number, id: string])[]
  /** Keys of requests that were refused after all. */
  readonly freedKeys: readonly Pick<SentKey, 'scope' | 'key'>[]
  /** Names of results that no task refers to any more. */
  readonly unusedResults: readonly string[]
}
