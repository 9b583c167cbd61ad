/** Events as text of a stream of server-sent events. Pure. */
import type { ServiceEvent } from '../../shared/contract/events.ts'

const encoder = new TextEncoder()

/** The first line of a stream: it makes the headers of the answer leave at once. */
export const OPEN_TEXT = encoder.encode(': open\n\n')

export const KEEP_ALIVE_TEXT = encoder.encode(': keep-alive\n\n')

/** An event without data only sets the id that the client resumes from. */
export const positionText = (seq: number): Uint8Array => encoder.encode(`id: ${seq}\n\n`)

let lastEvents: readonly ServiceEvent[] | undefined
let lastPrevious: number | undefined
let lastText = new Uint8Array()

/**
 * The text of `events`. `previous` is the number before the first one. Many streams get the same events one after the
 * other, so the last text is kept.
 */
export function eventsText(events: readonly ServiceEvent[], previous: number | undefined): Uint8Array {
  if (events === lastEvents && previous === lastPrevious) return lastText
  let text = ''
  let before = previous
  for (const { event, seq, at, ...payload } of events) {
    const data = JSON.stringify({ seq, ...(before !== undefined && { previous: before }), at, ...payload })
    text += `id: ${seq}\nevent: ${event}\ndata: ${data}\n\n`
    before = seq
  }
  lastEvents = events
  lastPrevious = previous
  lastText = encoder.encode(text)
  return lastText
}
