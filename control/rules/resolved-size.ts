/**
 * Limits the total bytes of the values in one input. Pure.
 *
 * A task may refer to a large value thousands of times. So every use of a reference or parameter counts, before the
 * input is built. Literals do not count, because they are part of the submission.
 */

/** Maximum bytes of JSON of all references and parameters of one task together. */
export const MAX_RESOLVED_BYTES = 64 * 1024 * 1024

export class ResolvedSize {
  #bytes = 0

  /** Adds a value of `bytes` bytes. Returns the fault if the limit is exceeded. */
  add(bytes: number): string | undefined {
    this.#bytes += bytes
    return this.#bytes > MAX_RESOLVED_BYTES
      ? `the values of references and parameters have more than ${MAX_RESOLVED_BYTES} bytes together`
      : undefined
  }
}
