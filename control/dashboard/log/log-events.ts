/** Reads a followed log from a stream of server-sent events, in chunks of text as they come. Pure. */
import { LOG_BEGIN, LOG_BYTES, type LogBegin } from '../../../shared/contract/followed-log.ts'

const EVENT_END = '\n\n'
const BYTES_BEGIN = `event: ${LOG_BYTES}\ndata: `
const BEGIN_BEGIN = `event: ${LOG_BEGIN}\ndata: `

export class LogEvents {
  readonly #decoder = new TextDecoder()
  #rest = ''
  /** Lines of the output before the first that comes. Undefined: unknown. */
  linesBefore: number | undefined

  /** The output that `chunk` completes. A character whose bytes are in two events is whole. */
  push(chunk: string): string {
    const text = this.#rest + chunk
    const end = text.lastIndexOf(EVENT_END)
    this.#rest = end < 0 ? text : text.slice(end + EVENT_END.length)
    if (end < 0) return ''
    let output = ''
    for (const event of text.slice(0, end).split(EVENT_END)) {
      if (event.startsWith(BEGIN_BEGIN))
        this.linesBefore = (JSON.parse(event.slice(BEGIN_BEGIN.length)) as LogBegin).lines_before
      if (event.startsWith(BYTES_BEGIN)) output += this.#decoder.decode(bytesOf(event.slice(BYTES_BEGIN.length)), MORE)
    }
    return output
  }
}

const MORE = { stream: true } as const

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))
