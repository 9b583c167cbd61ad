/**
 * Bytes of the values in one input together. Pure.
 *
 * A task may name a large value thousands of times. So the values of references and parameters are counted where they stand,
 * before an input is made of them. Those of literals are part of what was submitted.
 */

/** Bytes of JSON that references and parameters of one task may stand for together. */
export const MAX_RESOLVED_BYTES = 64 * 1024 * 1024

export class ResolvedSize {
  #bytes = 0

  /** Counts a value of `bytes` bytes. Returns what is wrong if there are too many now. */
  add(bytes: number): string | undefined {
    this.#bytes += bytes
    return this.#bytes > MAX_RESOLVED_BYTES
      ? `the values of references and parameters have more than ${MAX_RESOLVED_BYTES} bytes together`
      : undefined
  }
}
