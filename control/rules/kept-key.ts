/** An idempotency key: a repeated request with the same one gets the answer of the first (`log/idempotency.ts`). */

/** A key as it was sent. */
export interface SentKey {
  /** The route that the key was sent to. Equal keys of different routes are different keys. */
  readonly scope: string
  readonly key: string
  /** SHA-256 of the body, in hex. */
  readonly hash: string
}

/** A key with its answer, as it is on disk. */
export interface KeptKey extends SentKey {
  /** The body of the 202. */
  readonly answer: string
  /** Milliseconds since 1970. */
  readonly at: number
}
