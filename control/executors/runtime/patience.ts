/** Pauses between calls to a service that is away, ever longer, until there have been enough of them. */

/** Milliseconds between two calls: at first, and at most. */
const FIRST_PAUSE_MS = 25
const MAX_PAUSE_MS = 1_000

export class Patience {
  readonly #until: number
  readonly #signal: AbortSignal | undefined
  #pauseMs = FIRST_PAUSE_MS

  constructor(totalMs: number, signal?: AbortSignal) {
    this.#until = performance.now() + totalMs
    this.#signal = signal
  }

  /** False when it is used up, or the signal fired. */
  async pause(): Promise<boolean> {
    const left = this.#until - performance.now()
    if (left <= 0 || this.#signal?.aborted) return false
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    const timer = setTimeout(wake, Math.min(this.#pauseMs, left))
    this.#signal?.addEventListener('abort', wake, { once: true })
    await promise
    clearTimeout(timer)
    this.#signal?.removeEventListener('abort', wake) // it outlives many a pause
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS)
    return !this.#signal?.aborted
  }
}
