/** An event stream of control, from the client's side. */
import { isObject, jsonOrUndefined } from '../text/json.ts'
import { EventSplitter } from './server-sent-events.ts'
import { SilenceLimit } from './silence-limit.ts'
import { chunksOf, type StreamSource } from './source.ts'

/** Bytes of one event. A reset carries up to 10,000 tasks with an error of 1,000 characters each. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024

export interface StreamedEvent {
  readonly kind: string
  readonly data: object
  /** Resumes the stream after this event. */
  readonly id: string | undefined
}

export interface EventStreamRequest {
  /** The path of the stream, with its query. */
  readonly path: string
  /** Resumes after the event with this id. */
  readonly lastEventId?: string | undefined
  /** Called with the id that the stream can be resumed from, before its first event and after each chunk. */
  readonly onPosition?: (id: string) => void
  readonly signal: AbortSignal
}

/** Ends when the service closes the stream. Throws what `open` throws, or the error of the connection. */
export async function* eventStream(
  source: StreamSource,
  { path, lastEventId, onPosition, signal }: EventStreamRequest,
): AsyncGenerator<StreamedEvent> {
  const silence = new SilenceLimit()
  silence.begin()
  const headers = { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) }
  const splitter = new EventSplitter(MAX_EVENT_BYTES)
  try {
    const { stream } = await source.open(path, headers, AbortSignal.any([signal, silence.signal]))
    for await (const chunk of chunksOf(stream)) {
      silence.begin()
      for (const { type: kind, data: text, id } of splitter.events(chunk)) {
        const data = jsonOrUndefined(text)
        if (isObject(data)) yield { kind, data, id }
      }
      if (splitter.lastId !== undefined) onPosition?.(splitter.lastId)
    }
  } finally {
    silence.end()
  }
}
