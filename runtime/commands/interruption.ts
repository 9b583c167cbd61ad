/** Turns SIGTERM, SIGINT and SIGHUP into an abort, so that a command can clean up before it exits. */
import { constants } from 'node:os'

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  constructor(readonly signal: (typeof SIGNALS)[number]) {
    super(`interrupted by ${signal}`)
  }

  /** The exit code of a shell for a process that the signal ended. */
  get exitCode(): number {
    return 128 + constants.signals[this.signal]
  }
}

/**
 * Returns the result of `work`. On a signal it aborts `work`, waits until that has settled, and throws `Interrupted`. A second
 * signal exits at once, because the cleanup may hang.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const heed = (signal: Interrupted) => {
    if (controller.signal.aborted) process.exit(signal.exitCode)
    controller.abort(signal)
  }
  const handlers = SIGNALS.map((name) => [name, () => heed(new Interrupted(name))] as const)
  for (const [name, handler] of handlers) process.on(name, handler)
  try {
    const result = await work(controller.signal)
    controller.signal.throwIfAborted()
    return result
  } finally {
    for (const [name, handler] of handlers) process.off(name, handler)
  }
}
