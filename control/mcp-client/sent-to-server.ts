/**
 * The secrets that one MCP server has got with the arguments of calls. What it says of them later, such as in its last words
 * before it ends, may be told to another task, so it is masked.
 */
import type { CarriedSecrets } from '../outbound/carried-secrets.ts'

/** Calls whose secrets are remembered. A call that repeats those of another one counts as one with it. */
export const MAX_REMEMBERED_CALLS = 64

export class SentToServer {
  readonly #calls = new Map<string, CarriedSecrets>()

  add(secrets: CarriedSecrets): void {
    const { digest } = secrets
    this.#calls.delete(digest)
    this.#calls.set(digest, secrets)
    if (this.#calls.size <= MAX_REMEMBERED_CALLS) return
    const [oldest] = this.#calls.keys()
    this.#calls.delete(oldest!)
  }

  masked(text: string): string {
    let masked = text
    for (const secrets of this.#calls.values()) masked = secrets.maskedText(masked)
    return masked
  }
}
