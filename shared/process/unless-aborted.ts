/** Waiting for what goes on whether or not somebody waits for it: a shared connection, an answer to a request. */

/**
 * Settles as `work` does, or rejects with `fault` as soon as `signal` fires; `work` then goes on unheard. Nothing stays
 * behind at the signal, which may outlive many a wait.
 */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, fault: () => Error): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(fault())
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
