/** Cuts a stream of the output of a task into lines that any terminal can show. Pure. */
import { visibleLines } from '../../shared/text/visible-text.ts'

/** Characters of a line. The rest of a longer one begins another line, so that no line fills the memory. */
export const MAX_LINE_CHARACTERS = 16_384

export class OutputLines {
  readonly #decoder = new TextDecoder()
  #rest = ''

  /** The lines that `chunk` completes. */
  push(chunk: Uint8Array): string[] {
    return this.#cut(this.#decoder.decode(chunk, { stream: true }))
  }

  /** The unfinished line, if there is one. */
  end(): string[] {
    const lines = this.#cut(this.#decoder.decode())
    const last = this.#rest
    this.#rest = ''
    return last === '' ? lines : [...lines, harmless(last)]
  }

  #cut(text: string): string[] {
    const lines = (this.#rest + text).split('\n')
    let last = lines.pop()!
    const found = lines.flatMap((line) => [...pieces(line)])
    if (last.length > MAX_LINE_CHARACTERS) {
      const cut = [...pieces(last)]
      last = cut.pop()!
      found.push(...cut)
    }
    this.#rest = last
    return found.map(harmless)
  }
}

const harmless = (line: string): string => visibleLines(line.endsWith('\r') ? line.slice(0, -1) : line)

/** `line` in parts of at most `MAX_LINE_CHARACTERS`. No character is cut in two. */
function* pieces(line: string): Generator<string> {
  let from = 0
  while (line.length - from > MAX_LINE_CHARACTERS) {
    const to = from + MAX_LINE_CHARACTERS
    const end = (line.charCodeAt(to) & 0xfc00) === 0xdc00 ? to - 1 : to
    yield line.slice(from, end)
    from = end
  }
  yield line.slice(from)
}
