/** What has to be cleaned up before a signal may end us: whoever works is told by an AbortSignal, and cleans up as ever. */
import { constants } from 'node:os'

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  constructor(readonly signal: (typeof SIGNALS)[number]) {
    super(`interrupted by ${signal}`)
  }

  /** As a shell has it for who was ended by the signal. */
  get exitCode(): number {
    return 128 + constants.signals[this.signal]
  }
}

/**
 * What `work` gives. Throws `Interrupted` when a signal came meanwhile, once `work` has come to its end. A second signal ends
 * us at once: something may be stuck.
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
