/** Lines out of the chunks of a stream, none longer than a limit. Pure. */

const NEWLINE = 10

export class LineTooLong extends Error {
  override name = 'LineTooLong'
}

export class LineSplitter {
  readonly #maxBytes: number
  /** The beginning of the line that is not complete yet. Joined once, at its end: joining at each chunk is quadratic. */
  #parts: Uint8Array[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that `chunk` completes, without their ends. Throws `LineTooLong`; nothing can be split after that. */
  *push(chunk: Uint8Array): Generator<string, void> {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield this.#complete(chunk.subarray(from, end))
      from = end + 1
    }
    if (from < chunk.length) this.#keep(chunk.slice(from)) // a copy: whoever read the chunk may use its memory again
  }

  /** What there is of the line that is not complete: its first `maxBytes`. After `LineTooLong` it is that line. */
  rest(maxBytes = this.#maxBytes): string {
    return Buffer.concat(this.#parts, Math.min(this.#bytes, maxBytes)).toString('utf8')
  }

  #complete(last: Uint8Array): string {
    this.#keep(last)
    const line = Buffer.concat(this.#parts, this.#bytes).toString('utf8')
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
