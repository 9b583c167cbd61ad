/**
 * Callers that wait until an output or a log has grown.
 *
 * They are told a few at a time, so that thousands of them do not block the event loop. Whoever wants to be told again
 * waits again, so a source that grows quickly does not tell a slow reader twice.
 */
import { nextTurn, STEPS_PER_YIELD } from '../process/steps.ts'

export class GrowthWaiters {
  readonly #waiting = new Set<() => void>()

  /** Calls `told` once, at the next growth. Returns a function that cancels this. */
  add(told: () => void): () => void {
    this.#waiting.add(told)
    return () => void this.#waiting.delete(told)
  }

  /** The first few are told at once. */
  tell(): void {
    if (this.#waiting.size === 0) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    void tellAll(waiting)
  }
}

async function tellAll(waiting: readonly (() => void)[]): Promise<void> {
  for (let i = 0; i < waiting.length; i++) {
    waiting[i]!()
    if (i % STEPS_PER_YIELD === STEPS_PER_YIELD - 1) await nextTurn()
  }
}

/** Resolves when `source` grows next, or when `signal` fires. Nothing stays behind at either. */
export function grown(source: Pick<GrowthWaiters, 'add'>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const stop = () => {
      forget()
      signal.removeEventListener('abort', stop)
      resolve()
    }
    const forget = source.add(stop)
    signal.addEventListener('abort', stop, { once: true })
  })
}
