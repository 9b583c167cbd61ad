/** Splits the chunks of a stream into lines of limited length. Pure, and for browsers too. */

const NEWLINE = 10

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export class LineTooLong extends Error {
  override name = 'LineTooLong'
}

export class LineSplitter {
  readonly #maxBytes: number
  /** Chunks of the unfinished line. They are joined once at its end: joining at each chunk would be quadratic. */
  #parts: Uint8Array[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that `chunk` completes, without line ends. Throws `LineTooLong`; the splitter is unusable then. */
  *push(chunk: Uint8Array): Generator<string, void> {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield this.#complete(chunk.subarray(from, end))
      from = end + 1
    }
    if (from < chunk.length) this.#keep(chunk.slice(from)) // a copy, because the reader may reuse the memory of the chunk
  }

  /** The first `maxBytes` of the unfinished line, or of the line that was too long. */
  rest(maxBytes = this.#maxBytes): string {
    return decoder.decode(joined(this.#parts, this.#bytes).subarray(0, maxBytes))
  }

  #complete(last: Uint8Array): string {
    this.#keep(last)
    const line = decoder.decode(joined(this.#parts, this.#bytes))
    this.#parts = []
    this.#bytes = 0
    return line.endsWith('\r') ? line.slice(0, -1) : line
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length
    this.#parts.push(part)
    if (this.#bytes > this.#maxBytes) throw new LineTooLong(`a line of more than ${this.#maxBytes} bytes`)
  }
}

/** A copy only if there is more than one part. */
function joined(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  if (parts.length === 1) return parts[0]!
  const all = new Uint8Array(bytes)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
