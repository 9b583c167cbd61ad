/** Gives a stream up that is too silent. The service sends a comment every 15 s. */

/** Milliseconds without a byte after which the connection counts as lost. */
const MAX_SILENCE_MS = 45_000

export class SilenceLimit {
  readonly #maxMs: number
  readonly #lost = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(maxMs = MAX_SILENCE_MS) {
    this.#maxMs = maxMs
  }

  /** Fires when the silence was too long, or the reader has left. */
  get signal(): AbortSignal {
    return this.#lost.signal
  }

  /** A byte has arrived, or the silence begins. */
  begin(): void {
    clearTimeout(this.#timer)
    const tooSilent = () => this.#lost.abort(new Error(`nothing arrived for ${this.#maxMs} ms`))
    this.#timer = setTimeout(tooSilent, this.#maxMs)
  }

  /** The reader has left: the connection is closed. */
  end(): void {
    clearTimeout(this.#timer)
    this.#lost.abort(new Error('the reader has left'))
  }
}
