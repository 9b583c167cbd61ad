/** The data of server-sent events. Pure but for the stream that it reads. */
import { LineSplitter, LineTooLong } from '../../shared/line-splitter.ts'

/** The data of each event in `stream`, as it comes. Throws `LineTooLong`. */
export async function* eventData(stream: ReadableStream<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const lines = new LineSplitter(maxBytes)
  let data: string[] = []
  let characters = 0
  for await (const chunk of stream) {
    for (const line of lines.push(chunk)) {
      if (line === '') {
        if (data.length > 0) yield data.join('\n')
        data = []
        characters = 0
      } else if (line.startsWith('data:')) {
        data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
        characters += line.length
        if (characters > maxBytes) throw new LineTooLong(`an event of more than ${maxBytes} bytes`)
      }
    }
  }
}
