/** Text as UTF-8, in a buffer that is reused. Says how many bytes each addition takes, which offsets in a file need. */

/** UTF-16 code units take at most this many bytes of UTF-8. */
const MAX_BYTES_PER_UNIT = 3

export class TextBuffer {
  #buffer: Buffer
  #length = 0

  constructor(firstBytes: number) {
    this.#buffer = Buffer.from(new ArrayBuffer(firstBytes))
  }

  /** Bytes of the text. */
  get length(): number {
    return this.#length
  }

  /** Returns the number of bytes that were added. */
  add(text: string): number {
    const needed = this.#length + text.length * MAX_BYTES_PER_UNIT
    if (needed > this.#buffer.length) {
      const larger = Buffer.from(new ArrayBuffer(2 * needed))
      larger.set(this.bytes)
      this.#buffer = larger
    }
    const added = this.#buffer.write(text, this.#length)
    this.#length += added
    return added
  }

  /** The text. Valid until the next `add` or `clear`. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
  }
}
