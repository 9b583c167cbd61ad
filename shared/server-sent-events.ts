/** The data of server-sent events of the usual type out of the chunks of a stream, none longer than a limit. Pure. */
import { LineSplitter, LineTooLong } from './line-splitter.ts'

const USUAL_TYPE = 'message'

export class EventSplitter {
  readonly #maxBytes: number
  readonly #lines: LineSplitter
  #data: string[] = []
  #characters = 0
  /** Of the event under way; others than the usual one have listeners of their own, which nobody is. */
  #type = USUAL_TYPE
  /** Whether there was an event with an id. */
  hasIds = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#lines = new LineSplitter(maxBytes)
  }

  /** The data of each event that `chunk` completes. Throws `LineTooLong`; nothing can be split after that. */
  *push(chunk: Uint8Array): Generator<string, void> {
    for (const line of this.#lines.push(chunk)) {
      if (line === '') {
        if (this.#data.length > 0 && this.#type === USUAL_TYPE) yield this.#data.join('\n')
        this.#data = []
        this.#characters = 0
        this.#type = USUAL_TYPE
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
        this.#characters += line.length
        if (this.#characters > this.#maxBytes) throw new LineTooLong(`an event of more than ${this.#maxBytes} bytes`)
      } else if (line.startsWith('id:')) this.hasIds = true
      else if (line.startsWith('event:')) this.#type = line.slice('event:'.length).trim() || USUAL_TYPE
    }
  }
}
