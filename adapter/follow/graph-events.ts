/** The event stream of a graph, from the client's side. */

import type { ServiceClient } from '../../shared/http-client.ts'
import { isObject, jsonOrUndefined } from '../../shared/json.ts'
import { EventSplitter } from '../../shared/server-sent-events.ts'
import { SilenceLimit } from './silence-limit.ts'

/** Bytes of one event. A reset carries up to 10,000 tasks with an error of 1,000 characters each. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024

export interface GraphEvent {
  readonly kind: string
  readonly data: object
  /** Resumes the stream after this event. */
  readonly id: string | undefined
}

/** Where the stream begins: after the event with this id, or after the event with this number. */
export type Since = { readonly lastEventId: string } | { readonly after: number }

/** Ends when the service closes the stream. Throws `CallFailed`, or the error of the connection. */
export async function* graphEvents(
  client: ServiceClient,
  graphId: string,
  since: Since,
  signal: AbortSignal,
): AsyncGenerator<GraphEvent> {
  const silence = new SilenceLimit()
  silence.begin()
  const after = 'after' in since ? `&after=${since.after}` : ''
  const path = `/graphs/${encodeURIComponent(graphId)}/events?until=ended${after}`
  const headers = {
    accept: 'text/event-stream',
    ...('lastEventId' in since && { 'last-event-id': since.lastEventId }),
  }
  const splitter = new EventSplitter(MAX_EVENT_BYTES)
  try {
    const { stream } = await client.open(path, headers, AbortSignal.any([signal, silence.signal]))
    for await (const chunk of stream) {
      silence.begin()
      for (const { type: kind, data: text, id } of splitter.events(chunk)) {
        const data = jsonOrUndefined(text)
        if (isObject(data)) yield { kind, data, id }
      }
    }
  } finally {
    silence.end()
  }
}
