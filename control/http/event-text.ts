/** Events as text of a stream of server-sent events. Pure. */
import type { ServiceEvent } from '../../shared/contract/events.ts'

const encoder = new TextEncoder()

/** The first line of a stream: it makes the headers of the answer leave at once. */
export const OPEN_TEXT = encoder.encode(': open\n\n')

export const KEEP_ALIVE_TEXT = encoder.encode(': keep-alive\n\n')

/** A replica tells another one that it has sent the past, up to the number `seq`. */
export const LIVE = 'live'
export const liveText = (seq: number): string => `id: ${seq}\nevent: ${LIVE}\ndata: {}\n\n`

/** An event without data only sets the id that the client resumes from. */
export const positionText = (seq: number): Uint8Array => encoder.encode(`id: ${seq}\n\n`)

export interface EventPart {
  readonly seq: number
  readonly kind: string
  /** JSON. */
  readonly data: string
}

/** Without an id, a client does not resume from the event. */
export const partText = (id: string | undefined, { kind, data }: Pick<EventPart, 'kind' | 'data'>): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${kind}\ndata: ${data}\n\n`

/** Many streams get the same events one after the other, so the last ones are kept. */
let last: {
  readonly events: readonly ServiceEvent[]
  readonly previous: number | undefined
  readonly parts: readonly EventPart[]
  text?: Uint8Array
} = { events: [], previous: undefined, parts: [] }

/** `events` in parts. `previous` is the number before the first one. */
export function eventParts(events: readonly ServiceEvent[], previous: number | undefined): readonly EventPart[] {
  if (events === last.events && previous === last.previous) return last.parts
  let before = previous
  const parts = events.map(({ event: kind, seq, at, ...payload }) => {
    const data = JSON.stringify({ seq, ...(before !== undefined && { previous: before }), at, ...payload })
    before = seq
    return { seq, kind, data }
  })
  last = { events, previous, parts }
  return parts
}

/** The same as one text. */
export function eventsText(events: readonly ServiceEvent[], previous: number | undefined): Uint8Array {
  const parts = eventParts(events, previous)
  last.text ??= encoder.encode(parts.map((part) => partText(String(part.seq), part)).join(''))
  return last.text
}
