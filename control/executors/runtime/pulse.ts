/**
 * Whether a runtime service answers, while attempts are there.
 *
 * A service that is stopped, or cut off without a word, still accepts connections, and a long poll would notice that only
 * after half a minute. So it is asked every second whether it lives, also while earlier questions have no answer yet: a
 * busy service answers late. Its silence is counted in the time in which this process runs: one that was stopped itself must
 * not conclude that others are away.
 */
import { CallFailed } from '../../../shared/http/client.ts'
import { newTraceId } from '../../../shared/logs/trace.ts'
import { isAway, type RuntimeService } from './service.ts'

/** Milliseconds between two questions. */
export const PULSE_MS = 1_000

/** Milliseconds of silence after which a service counts as away. */
export const SILENT_AFTER_MS = 2_000

/** Milliseconds for the answer to one question. An answer after that time does not count. */
const ANSWER_MS = 10_000

const NO_ANSWER = 'no answer'

interface Patience {
  readonly ms: number
  readonly over: AbortController
}

export class Pulse {
  readonly #service: RuntimeService
  readonly #tell: (fault: string | undefined) => void
  readonly #patiences = new Set<Patience>()
  #watchers = 0
  #timer: Timer | undefined
  #silentMs = 0
  #tickedAt = 0
  #fault = NO_ANSWER

  /** `tell` is called with why the service is silent, or with undefined after an answer. */
  constructor(service: RuntimeService, tell: (fault: string | undefined) => void) {
    this.#service = service
    this.#tell = tell
  }

  /** Asks until all who called this have called the result. */
  watch(): () => void {
    if (this.#watchers++ === 0) {
      this.#silentMs = 0
      this.#tickedAt = performance.now()
      this.#timer = setInterval(() => this.#tick(), PULSE_MS)
      this.#timer.unref()
    }
    let isWatching = true
    return () => {
      if (!isWatching) return
      isWatching = false
      if (--this.#watchers === 0) clearInterval(this.#timer)
    }
  }

  /** A signal that fires once a watched service has been silent for `ms`, and a function that lets go of it. */
  silentFor(ms: number): { readonly signal: AbortSignal; readonly release: () => void } {
    const patience: Patience = { ms: Math.max(ms, SILENT_AFTER_MS), over: new AbortController() }
    this.#patiences.add(patience)
    if (this.#silentMs >= patience.ms) patience.over.abort()
    return { signal: patience.over.signal, release: () => this.#patiences.delete(patience) }
  }

  #tick(): void {
    const now = performance.now()
    this.#silentMs += Math.min(now - this.#tickedAt, 2 * PULSE_MS)
    this.#tickedAt = now
    if (this.#silentMs >= SILENT_AFTER_MS) this.#tell(this.#fault)
    for (const { ms, over } of [...this.#patiences]) if (this.#silentMs >= ms) over.abort()
    void this.#ask()
  }

  async #ask(): Promise<void> {
    try {
      await this.#service.ping(ANSWER_MS, newTraceId())
      this.answered()
    } catch (error) {
      if (!(error instanceof CallFailed)) this.#fault = String(error)
      else if (isAway(error)) this.#fault = error.fault
      else this.answered()
    }
  }

  /** To be called with each other answer of the service, too. A service may be slow to say that it lives. */
  answered(): void {
    this.#silentMs = 0
    this.#fault = NO_ANSWER
    this.#tell(undefined)
  }
}
