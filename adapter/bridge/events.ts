/** Reads server-sent events from a stream. */
import { EventSplitter } from '../../shared/streams/server-sent-events.ts'

/** The data of each event as it arrives. Throws `LineTooLong`. */
export async function* eventData(stream: ReadableStream<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const events = new EventSplitter(maxBytes)
  for await (const chunk of stream) yield* events.push(chunk)
}
