/**
 * What a replica writes in one turn.
 *
 * Turns follow one another. A turn is one statement and one commit. It also checks that no other replica has taken over,
 * and renews the lease.
 */

import type { GraphConcurrency } from '../../../shared/contract/graph-groups.ts'
import { limitOf } from '../../task/graph-groups.ts'
import type { KeptKey, SentKey } from '../idempotency.ts'
import type { CallbackState } from '../kept-callbacks.ts'
import type { OrphanState } from '../kept-orphans.ts'
import type { OnFull } from './place-rule.ts'

/** A graph that is submitted. */
export interface NewGraph {
  /** Its number, which no other graph of any replica has. */
  readonly ordinal: number
  readonly id: string
  /** Whose graph it is. */
  readonly tenant?: string | undefined
  /** The graph as a frame of the journal has it. Empty: only ids are taken, for a graph that is kept already. */
  readonly payload: string
  /** Ids of tasks that no other live graph may have. Empty for a scoped graph. */
  readonly taskIds: readonly string[]
  readonly key: KeptKey | undefined
  /** Absent if it shares no limit with other graphs. */
  readonly place?: NewPlace
  /** Absent if no schedule submits it. */
  readonly schedule?: NewScheduleChange
}

/** How far a schedule is with a graph. */
export interface NewScheduleChange {
  readonly name: string
  /** The version that is changed. */
  readonly version: number
  /** As JSON. */
  readonly progress: string
  readonly due?: number
}

/** What a graph shares a limit by. */
export interface NewPlace {
  readonly group: string
  readonly limit: number
  readonly onFull: OnFull
}

/** Before and after a tenant, which has none in its name. */
const MARK = '\u0001'

/** The name of a group, in which each tenant has names of its own. */
const groupOf = (group: string, tenant: string | undefined): string =>
  tenant === undefined && !group.startsWith(MARK) ? group : MARK + (tenant ?? '') + MARK + group

/** The place of a graph of `tenant` that is submitted with `concurrency`, as its row has it. */
export const placeIn = (concurrency: GraphConcurrency, tenant: string | undefined): NewPlace => ({
  group: groupOf(concurrency.group.toWellFormed(), tenant),
  limit: limitOf(concurrency),
  onFull: concurrency.on_full ?? 'wait',
})

/** States of tasks of one graph, a patch, or the list of a task with `for_each` (`frame-payloads.ts`). */
export interface NewFrame {
  readonly ordinal: number
  /** Frames of a graph are in the order of these numbers. */
  readonly number: number
  readonly payload: string
  /**
   * The highest number of a change among frames that were encoded together: all changes of later ones have higher numbers.
   * 0 for a list.
   */
  readonly seq: number
  /** Number of its changes. */
  readonly changes: number
  /** Whether the graph has ended with it, or before. */
  readonly ends: boolean
  /** In the first frame with `ends`: when the graph ended (milliseconds since 1970), and its tasks. */
  readonly endedAt?: number
  readonly tasks?: number
  /** In that frame: the graph shared a limit. */
  readonly freesPlace?: boolean
  /** In a patch: ids that the graph has no more. */
  readonly freedIds?: readonly string[]
  /** The key that was sent with what the frame has. */
  readonly key?: KeptKey | undefined
}

/** A graph that had ended runs again. */
export interface RevivedGraph {
  readonly ordinal: number
  /** Undefined if it shares no limit with other graphs. */
  readonly place: NewPlace | undefined
}

/** A graph was removed, with its frames. */
export interface Removal {
  readonly seq: number
  readonly graphId: string
  readonly tenant: string | undefined
  /** Milliseconds since 1970. */
  readonly at: number
}

/** What a turn tells schedules. */
export interface TurnNews {
  /** The time in the database: milliseconds since 1970. */
  readonly at: number
  /** The other replicas that submit graphs of schedules: their numbers, rising, each with * if it has a directory of schedules. */
  readonly submitters: string
}

/** Adds a parameter to the statement of a turn. Returns its placeholder. */
export type AddParameter = (value: unknown) => string

export interface TurnWrites {
  readonly graphs: readonly NewGraph[]
  readonly frames: readonly NewFrame[]
  /** Numbers of graphs whose rows are removed. */
  readonly removed: readonly number[]
  /** Ids of tasks that their graphs, given by number, have no more. */
  readonly freedIds: readonly (readonly [ordinal: number, id: string])[]
  /** Keys of requests that were refused after all. */
  readonly freedKeys: readonly Pick<SentKey, 'scope' | 'key'>[]
  /** How many more (or fewer) tasks refer to a large result. */
  readonly resultUses: readonly (readonly [name: string, change: number])[]
  readonly callbacks: readonly CallbackState[]
  readonly orphans: readonly OrphanState[]
  /** Events of removed graphs. All other events can be made from frames. */
  readonly removals: readonly Removal[]
  readonly revived: readonly RevivedGraph[]
}
