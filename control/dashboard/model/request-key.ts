/**
 * The Idempotency-Key of requests that make a graph. The same request has the same key until it was answered: a double click,
 * or another try after a cut connection, makes one graph.
 */

/** Random bytes of a key. */
const KEY_BYTES = 16

export class RequestKey {
  #request: string | undefined
  #key = ''

  /** The key of `request`, which is its path and its body. */
  of(request: string): string {
    if (request !== this.#request) {
      this.#request = request
      // Not `crypto.randomUUID`: browsers have it only for https and for this machine.
      this.#key = Array.from(crypto.getRandomValues(new Uint8Array(KEY_BYTES)), hex).join('')
    }
    return this.#key
  }

  /** The request was answered: the same one is a new wish from now on. */
  answered(): void {
    this.#request = undefined
  }
}

const hex = (byte: number): string => byte.toString(16).padStart(2, '0')
