/** Counts failed attempts to sign in by address, so that nobody guesses many tokens. Pure, but for its memory. */

/** Failed attempts of an address in `FAILED_SIGN_INS_MS`. A further attempt gets 429, also with a good token. */
export const MAX_FAILED_SIGN_INS = 10

/** Milliseconds after which the first of them is forgotten, with the others. */
export const FAILED_SIGN_INS_MS = 60_000

/** Addresses with failed attempts. A further one forgets the oldest. */
export const MAX_FAILED_ADDRESSES = 1_000

interface Failures {
  readonly until: number
  count: number
}

export class FailedSignIns {
  readonly #byAddress = new Map<string, Failures>()

  /** Seconds until the address may try again; 0 if it may now. `now` is in milliseconds. */
  waitSeconds(address: string, now = performance.now()): number {
    const failures = this.#byAddress.get(address)
    if (failures === undefined || failures.until <= now) return 0
    return failures.count < MAX_FAILED_SIGN_INS ? 0 : Math.ceil((failures.until - now) / 1_000)
  }

  failed(address: string, now = performance.now()): void {
    const failures = this.#byAddress.get(address)
    if (failures !== undefined && failures.until > now) {
      failures.count++
      return
    }
    this.#byAddress.delete(address)
    if (this.#byAddress.size >= MAX_FAILED_ADDRESSES) this.#byAddress.delete(this.#byAddress.keys().next().value!)
    this.#byAddress.set(address, { until: now + FAILED_SIGN_INS_MS, count: 1 })
  }
}
