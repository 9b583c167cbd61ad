/**
 * The events of a task, kept in order as one JSON text in the row of the task. Pure.
 *
 * A task has about eight events, and every change of a task writes some. As rows of their own they cost twice as much
 * time as everything else that is stored about a task: a second B-tree, with as many pages as there are tasks.
 */

/** An event without its number. */
export interface NewEvent {
  readonly event_type: string
  readonly message: string
  readonly data?: object | undefined
  /** Milliseconds since 1970. Default: now. */
  readonly timestamp?: number
}

export interface TaskEvent {
  /** From 1, without gaps. */
  readonly seq: number
  readonly event_type: string
  /** Milliseconds since 1970. */
  readonly timestamp: number
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Type, time, message and data, as stored. The number of an event is its position. */
type KeptEvent = readonly [
  event_type: string,
  timestamp: number,
  message: string,
  data: Readonly<Record<string, unknown>> | null,
]

/** The stored text of no events. */
export const NO_EVENTS = '[]'

/** The stored text of the `kept` events and more. */
export function withEvents(kept: string, events: readonly NewEvent[], now: number): string {
  if (events.length === 0) return kept
  const more = JSON.stringify(
    events.map(({ event_type, timestamp = now, message, data = null }) => [event_type, timestamp, message, data]),
  )
  return kept === NO_EVENTS ? more : `${kept.slice(0, -1)},${more.slice(1)}`
}

/** Whether an event of this type is among them. */
export const hasEvent = (kept: string, eventType: string): boolean =>
  readEvents(kept).some(({ event_type }) => event_type === eventType)

export const readEvents = (kept: string): TaskEvent[] =>
  (JSON.parse(kept) as KeptEvent[]).map(([event_type, timestamp, message, data], i) => ({
    ...{ seq: i + 1, event_type, timestamp, message },
    data: data ?? {},
  }))
