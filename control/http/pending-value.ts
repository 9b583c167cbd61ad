/**
 * A promise that is waited for in turns. `Promise.race` would leave something at the promise each time, which a promise that
 * is open for days does not let go.
 */
export class PendingValue<T> {
  #outcome: { readonly value: T } | { readonly error: unknown } | undefined
  #wake: () => void = () => {}

  constructor(promise: Promise<T>) {
    const settle = (outcome: { readonly value: T } | { readonly error: unknown }) => {
      this.#outcome = outcome
      this.#wake()
    }
    promise.then(
      (value) => settle({ value }),
      (error) => settle({ error }),
    )
  }

  /** Its value, or undefined after `ms`. Throws what the promise was rejected with. One caller waits at a time. */
  async within(ms: number): Promise<{ readonly value: T } | undefined> {
    if (this.#outcome === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      this.#wake = resolve
      await promise
      clearTimeout(timer)
    }
    if (this.#outcome !== undefined && 'error' in this.#outcome) throw this.#outcome.error
    return this.#outcome
  }
}
