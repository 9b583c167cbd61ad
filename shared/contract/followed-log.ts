/**
 * A followed log as server-sent events, for who accepts `text/event-stream`. Unlike the bytes of the log, a stream of events
 * can have comments: they keep an idle connection alive, and tell both ends that the other one is there.
 */

export const EVENT_STREAM = 'text/event-stream'

/** The first event: the task as it is when its output begins. */
export const LOG_BEGIN = 'begin'

/** Each piece of output, in base64: it may be no text. */
export const LOG_BYTES = 'bytes'

/** The data of the first event. They are those of the headers of the plain form. */
export interface LogBegin {
  readonly status: string
  /** The attempt whose output comes first. Absent before the first attempt. */
  readonly attempt?: number
  /** The position of the first byte in the output of that attempt. */
  readonly offset: number
  /** Lines before that position. Absent if unknown: where another service has the output, and its beginning is left out. */
  readonly lines_before?: number
  /** Whether the task has written more than is kept. */
  readonly truncated: boolean
}
