/** A client of an event stream that keeps all it gets. */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { until } from './until.ts'

export class EventStreamClient implements AsyncDisposable {
  readonly events: ServiceEvent[] = []
  readonly comments: string[] = []
  /** The id to resume from. */
  lastId: string | undefined
  hasEnded = false
  readonly status: number
  readonly headers: Headers
  readonly #abort: AbortController
  readonly #reading: Promise<void>

  private constructor(response: Response, abort: AbortController) {
    this.status = response.status
    this.headers = response.headers
    this.#abort = abort
    this.#reading = this.#read(response.body!)
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<EventStreamClient> {
    const abort = new AbortController()
    const response = await fetch(url, { headers, signal: abort.signal })
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    return new EventStreamClient(response, abort)
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for await (const chunk of body) {
        const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
        rest = blocks.pop()!
        for (const block of blocks) this.#take(block)
      }
    } catch {
      // the connection was closed: by us, or with the service
    }
    this.hasEnded = true
  }

  #take(block: string): void {
    const fields = new Map<string, string>()
    for (const line of block.split('\n')) {
      const at = line.indexOf(':')
      if (at === 0) this.comments.push(line.slice(1).trim())
      else fields.set(line.slice(0, at), line.slice(at + 2))
    }
    this.lastId = fields.get('id') ?? this.lastId
    const data = fields.get('data')
    if (data !== undefined) this.events.push({ event: fields.get('event'), ...JSON.parse(data) } as ServiceEvent)
  }

  /** The events once `accept` says that they are enough. */
  once(accept: (events: readonly ServiceEvent[]) => boolean): Promise<readonly ServiceEvent[]> {
    return until(() => this.events, accept)
  }

  /** The events once the service has ended the stream. */
  async ended(): Promise<readonly ServiceEvent[]> {
    await this.#reading
    return this.events
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort()
    await this.#reading
  }
}

/** The events in the text of a stream. */
export const eventsIn = (text: string): ServiceEvent[] =>
  text.split('\n\n').flatMap((block) => {
    const kind = /^event: (.*)$/m.exec(block)?.[1]
    return kind === undefined ? [] : { event: kind, ...JSON.parse(/^data: (.*)$/m.exec(block)![1]!) }
  })

/** Events with the number of the event before them. */
const REPEATS: ReadonlySet<string> = new Set(['lagging', 'task_waiting'])

/** What goes wrong with numbers in the events of one stream: each follows the one before it. */
export function gapsIn(events: readonly ServiceEvent[], previous: number | undefined): string[] {
  const faults: string[] = []
  let before = previous
  for (const event of events) {
    if (event.previous !== before) faults.push(`${event.event} ${event.seq} follows ${event.previous}, not ${before}`)
    if (before !== undefined && event.seq <= before && !REPEATS.has(event.event))
      faults.push(`${event.event} ${event.seq} is not after ${before}`)
    before = event.seq
  }
  return faults
}
