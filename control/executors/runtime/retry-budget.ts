/** How long calls to an unreachable service are repeated, with growing pauses between them. */
import { GrowingPause } from '../../../shared/http/growing-pause.ts'

export class RetryBudget {
  readonly #until: number
  readonly #signal: AbortSignal | undefined
  readonly #pause = new GrowingPause({ firstMs: 25, longestMs: 1_000 })

  constructor(totalMs: number, signal?: AbortSignal) {
    this.#until = performance.now() + totalMs
    this.#signal = signal
  }

  /** Milliseconds, above 0 also when the time is used up. */
  get leftMs(): number {
    return Math.max(1, this.#until - performance.now())
  }

  /** Waits before the next call. False if the time is used up or the signal has fired: no further call. */
  async pause(): Promise<boolean> {
    const left = this.#until - performance.now()
    if (left <= 0 || this.#signal?.aborted) return false
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    const timer = setTimeout(wake, Math.min(this.#pause.next(), left))
    this.#signal?.addEventListener('abort', wake, { once: true })
    await promise
    clearTimeout(timer)
    this.#signal?.removeEventListener('abort', wake) // the signal outlives many pauses
    return !this.#signal?.aborted
  }
}
