/** The request for a stream of events, and the parts that a stream needs. */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { KeptEvents } from '../log/keeper.ts'
import type { Positions } from '../log/positions.ts'
import type { TaskStore } from '../task/tasks.ts'
import type { WaitingEvents } from './waiting-events.ts'
import type { WatchSubject } from './watch-subject.ts'

export interface WatchRequest {
  readonly subject: WatchSubject
  /** The number to resume after. 0 stands for the oldest kept event. Undefined: from now on. */
  readonly after: number | Positions | undefined
  /** Whether the stream ends when its graph or task has ended. */
  readonly untilEnded: boolean
  /** Set for a stream that is joined with those of other replicas. */
  readonly part?: PartOfStream
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

export interface WatchParts extends KeptEvents {
  readonly store: TaskStore
  readonly waiting: WaitingEvents
  readonly log: Pick<Log, 'error'>
}

/** Whether the history has all events after `after`. */
export const isKnownNumber = ({ history, numbers, store }: WatchParts, after: number, graphId?: string): boolean =>
  after >= history.oldest && after <= store.seq && !numbers.isLost(after, graphId)
