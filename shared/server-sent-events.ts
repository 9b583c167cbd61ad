/** Splits the chunks of a stream into server-sent events of limited size, and gives the data of those of type `message`. Pure. */
import { LineSplitter, LineTooLong } from './line-splitter.ts'

const MESSAGE_TYPE = 'message'

export class EventSplitter {
  readonly #maxBytes: number
  readonly #lines: LineSplitter
  #data: string[] = []
  #characters = 0
  /** Type of the unfinished event. Nobody listens to events of other types. */
  #type = MESSAGE_TYPE
  /** Whether an event had an id. */
  hasIds = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#lines = new LineSplitter(maxBytes)
  }

  /** The data of each event that `chunk` completes. Throws `LineTooLong`; the splitter is unusable then. */
  *push(chunk: Uint8Array): Generator<string, void> {
    for (const line of this.#lines.push(chunk)) {
      if (line === '') {
        if (this.#data.length > 0 && this.#type === MESSAGE_TYPE) yield this.#data.join('\n')
        this.#data = []
        this.#characters = 0
        this.#type = MESSAGE_TYPE
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
        this.#characters += line.length
        if (this.#characters > this.#maxBytes) throw new LineTooLong(`an event of more than ${this.#maxBytes} bytes`)
      } else if (line.startsWith('id:')) this.hasIds = true
      else if (line.startsWith('event:')) this.#type = line.slice('event:'.length).trim() || MESSAGE_TYPE
    }
  }
}
