/** The pauses between tries at something that may take long: each twice as long as the last one, up to a limit. */
export class GrowingPause {
  readonly #firstMs: number
  readonly #longestMs: number
  #ms: number

  constructor({ firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number }) {
    this.#firstMs = firstMs
    this.#longestMs = longestMs
    this.#ms = firstMs
  }

  /** Milliseconds of the next pause. */
  next(): number {
    const ms = this.#ms
    this.#ms = Math.min(2 * ms, this.#longestMs)
    return ms
  }

  /** The next pause is the first one again. */
  reset(): void {
    this.#ms = this.#firstMs
  }
}
