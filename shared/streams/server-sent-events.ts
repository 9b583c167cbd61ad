/** Splits the chunks of a stream into server-sent events of limited size. Pure. */
import { LineSplitter, LineTooLong } from './line-splitter.ts'

const MESSAGE_TYPE = 'message'

export interface ServerSentEvent {
  readonly type: string
  readonly data: string
  /** The last id of the stream so far; undefined before the first one. */
  readonly id: string | undefined
}

export class EventSplitter {
  readonly #maxBytes: number
  readonly #lines: LineSplitter
  #data: string[] = []
  #characters = 0
  /** Type of the unfinished event. */
  #type = MESSAGE_TYPE
  #id: string | undefined
  /** The id as it was at the last empty line. The event of a later one may be cut off. */
  #wholeId: string | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#lines = new LineSplitter(maxBytes)
  }

  /** Whether an event had an id. */
  get hasIds(): boolean {
    return this.#id !== undefined
  }

  /** The id to resume after: that of the last whole event, or one that came without an event. */
  get lastId(): string | undefined {
    return this.#wholeId
  }

  /** Each event that `chunk` completes. Throws `LineTooLong`; the splitter is unusable then. */
  *events(chunk: Uint8Array): Generator<ServerSentEvent, void> {
    for (const line of this.#lines.push(chunk)) {
      if (line === '') {
        this.#wholeId = this.#id
        if (this.#data.length > 0) yield { type: this.#type, data: this.#data.join('\n'), id: this.#id }
        this.#data = []
        this.#characters = 0
        this.#type = MESSAGE_TYPE
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
        this.#characters += line.length
        if (this.#characters > this.#maxBytes) throw new LineTooLong(`an event of more than ${this.#maxBytes} bytes`)
      } else if (line.startsWith('id:')) this.#id = line.slice('id:'.length).trim()
      else if (line.startsWith('event:')) this.#type = line.slice('event:'.length).trim() || MESSAGE_TYPE
    }
  }

  /** The data of the events of type `message` that `chunk` completes. Throws as `events`. */
  *push(chunk: Uint8Array): Generator<string, void> {
    for (const { type, data } of this.events(chunk)) if (type === MESSAGE_TYPE) yield data
  }
}
