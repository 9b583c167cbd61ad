/** The request for a stream of events, and the parts that a stream needs. */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { Positions } from '../log/positions.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { Ground } from './ground.ts'
import type { TaskAddress } from './named-tasks.ts'
import type { WaitingEvents } from './waiting-events.ts'

/** The address of a graph or a task. */
export type WatchAddress = { readonly graphId: string; readonly id?: undefined } | TaskAddress

/** The subject of a stream; without any member, the whole service. At most one member is set. */
export interface WatchSubject {
  readonly graph?: Graph
  readonly task?: Task
  /** A removed graph or task that the history still has events of. */
  readonly removed?: RemovedSubject
}

export interface RemovedSubject {
  readonly graphId: string
  /** Undefined if the subject is the graph. */
  readonly taskId: string | undefined
  /** Whose events are wanted; undefined for all. */
  readonly tenant: string | undefined
}

export interface WatchRequest {
  readonly subject: WatchSubject
  /** The number to resume after. 0 stands for the oldest kept event. Undefined: from now on. */
  readonly after: number | Positions | undefined
  /** Whether the stream ends when its graph or task has ended. */
  readonly untilEnded: boolean
  /** For a client that does not see everything. */
  readonly seen?: Seen
  /** Set for a stream that is joined with those of other replicas. */
  readonly part?: PartOfStream
}

/** What a client sees: all of the store, and the events of `tenant`; all events without one. */
export interface Seen {
  readonly store: TaskStore
  readonly tenant?: string
}

/** A stream that is joined with those of other replicas begins with its past, and then tells that it is live. */
export interface PartOfStream {
  /** Whether this stream sends the removals with numbers of this block. All replicas know all removals. */
  tellsRemovalsOf(block: number): boolean
  /** Whether its first event follows none. */
  readonly isNew?: boolean
}

/** The connection to the client. */
export interface EventSink {
  /** Sends the number to resume after, for a client that has got no event yet. A part sends it once it is live. */
  begin(seq: number): void
  /** Sends `events`. `previous` is the number before the first of them. */
  send: (events: readonly ServiceEvent[], previous: number | undefined) => void
  /** Whether the buffer of the client is full. */
  readonly isFull: boolean
  /** Resolves with true when the client has read its buffer, or with false if that takes too long. */
  drained(): Promise<boolean>
  end(): void
}

export interface WatchParts extends Ground {
  readonly waiting: WaitingEvents
}

/** Whether the history has all events after `after`. */
export const isKnownNumber = ({ keeper, store }: Ground, after: number, graphId?: string): boolean =>
  after >= keeper.history.oldest && after <= store.seq && !keeper.numbers.isLost(after, graphId)
