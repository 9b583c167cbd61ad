/** The limits of answers that stay open: event streams, and logs that are followed. */
export interface StreamLimits {
  /** Milliseconds between two comments in an event stream. */
  readonly keepAliveMs: number
  /** Milliseconds for which a client may read nothing while its buffer is full. */
  readonly slowClientMs: number
}
