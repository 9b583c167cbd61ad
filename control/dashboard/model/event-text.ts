/** Reads a stream of server-sent events from chunks of text. */
import type { StreamEvent } from './wire.ts'

/** Maximum characters of an event. A `reset` carries a whole graph. */
const MAX_EVENT_CHARACTERS = 32 * 1024 * 1024

export class EventText {
  #rest = ''

  /** The events that `chunk` completes. Throws if one is larger than the page takes. */
  push(chunk: string): StreamEvent[] {
    const text = this.#rest + chunk
    const end = text.lastIndexOf('\n\n')
    this.#rest = end < 0 ? text : text.slice(end + 2)
    if (this.#rest.length > MAX_EVENT_CHARACTERS) throw new Error('an event is larger than the page takes')
    return end < 0 ? [] : text.slice(0, end).split('\n\n').flatMap(eventOf)
  }
}

function eventOf(block: string): StreamEvent[] {
  let kind = ''
  let data = ''
  let id: string | undefined
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) kind = line.slice('event:'.length).trim()
    else if (line.startsWith('id:')) id = line.slice('id:'.length).trim()
    else if (line.startsWith('data:')) data += line.slice('data:'.length)
  }
  if (kind === '' || data === '') return []
  return [{ ...(JSON.parse(data) as object), kind, ...(id !== undefined && { id }) } as StreamEvent]
}
