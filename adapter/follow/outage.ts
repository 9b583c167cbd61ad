/**
 * Retries while the service is unreachable: with growing pauses, a notice for people, and a time limit.
 */

import { CallFailed } from '../../shared/http/client.ts'
import { faultText } from '../../shared/http/connection-fault.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import { unlessAborted } from '../../shared/process/unless-aborted.ts'

const PAUSES = { firstMs: 100, longestMs: 3_000 }

/** Milliseconds without the service after which the last error is thrown. */
const MAX_AWAY_MS = 600_000

export class Outage {
  readonly #signal: AbortSignal
  readonly #onBegin: (notice: string) => void
  readonly #pause = new GrowingPause(PAUSES)
  #since: number | undefined
  /** The fault of the connection; empty if there is none. */
  notice = ''

  /** `onBegin` is called once per outage. */
  constructor(signal: AbortSignal, onBegin: (notice: string) => void = () => {}) {
    this.#signal = signal
    this.#onBegin = onBegin
  }

  /** Ends the outage, because the service has answered. */
  over(): void {
    this.#pause.reset()
    this.#since = undefined
    this.notice = ''
  }

  /**
   * Waits before the next try. Throws `error` if another try cannot help, or the reason of the signal once it fires.
   */
  async lost(error: unknown): Promise<void> {
    this.#signal.throwIfAborted()
    if (error instanceof CallFailed && isFinal(error)) throw error
    const isNew = this.#since === undefined
    this.#since ??= Date.now()
    if (Date.now() - this.#since > MAX_AWAY_MS) throw error
    const fault = error instanceof CallFailed ? error.message : faultText(error)
    this.notice = `connection lost, trying again: ${fault}`
    if (isNew) this.#onBegin(this.notice)
    await unlessAborted(Bun.sleep(this.#pause.next()), this.#signal, () => this.#signal.reason as Error)
  }
}

/** Whether the refusal is permanent. Only an unreachable or busy service is worth another try. */
const isFinal = ({ statusCode }: CallFailed): boolean => statusCode >= 400 && statusCode < 500 && statusCode !== 429
