/**
 * The events of a task: appended, read in their order, kept in the row of their task as one JSON text. Pure.
 *
 * A task has about eight of them, all of which are written when it changes. As rows of their own they cost twice the time
 * of all the rest that is kept of a task: another tree, whose pages are as many as there are tasks.
 */

/** An event before it has its number. */
export interface NewEvent {
  readonly event_type: string
  readonly message: string
  readonly data?: object | undefined
  /** Milliseconds since 1970; left out: now. */
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

/** As it is kept: type, time, message, data. Its number is its place. */
type KeptEvent = readonly [
  event_type: string,
  timestamp: number,
  message: string,
  data: Readonly<Record<string, unknown>> | null,
]

/** What is kept of events before there are any. */
export const NO_EVENTS = '[]'

/** The text of what was `kept`, and more. */
export function withEvents(kept: string, events: readonly NewEvent[], now: number): string {
  if (events.length === 0) return kept
  const more = JSON.stringify(
    events.map(({ event_type, timestamp = now, message, data = null }) => [event_type, timestamp, message, data]),
  )
  return kept === NO_EVENTS ? more : `${kept.slice(0, -1)},${more.slice(1)}`
}

/** Whether one of this type was kept. */
export const hasEvent = (kept: string, eventType: string): boolean =>
  readEvents(kept).some(({ event_type }) => event_type === eventType)

export const readEvents = (kept: string): TaskEvent[] =>
  (JSON.parse(kept) as KeptEvent[]).map(([event_type, timestamp, message, data], i) => ({
    ...{ seq: i + 1, event_type, timestamp, message },
    data: data ?? {},
  }))
