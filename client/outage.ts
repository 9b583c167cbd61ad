/** Goes on waiting while the service is away: with growing pauses, up to a limit. */
import { GrowingPause } from '../shared/http/growing-pause.ts'
import type { Patience } from '../shared/streams/followed-log.ts'
import { pause } from '../shared/streams/pause.ts'
import { TaskmillError } from './errors.ts'

const PAUSES = { firstMs: 100, longestMs: 3_000 }

export class Outage implements Patience {
  readonly #signal: AbortSignal | undefined
  readonly #awayMs: number
  /** Milliseconds of this outage. The first one is shorter: the address may be wrong. */
  #limitMs: number
  readonly #pause = new GrowingPause(PAUSES)
  #since: number | undefined

  constructor({ retryMs, awayMs }: { readonly retryMs: number; readonly awayMs: number }, signal?: AbortSignal) {
    this.#limitMs = Math.min(retryMs, awayMs)
    this.#awayMs = awayMs
    this.#signal = signal
  }

  over(): void {
    this.#pause.reset()
    this.#since = undefined
    this.#limitMs = this.#awayMs
  }

  /** Throws `error` if another try cannot help, or the reason of the signal. */
  async lost(error: unknown): Promise<void> {
    this.#signal?.throwIfAborted()
    if (error instanceof TaskmillError && isFinal(error)) throw error
    this.#since ??= Date.now()
    const waitMs = Math.max(this.#pause.next(), (error instanceof TaskmillError && error.retryAfterMs) || 0)
    if (Date.now() + waitMs - this.#since > this.#limitMs) throw asFailure(error)
    await pause(waitMs, this.#signal)
  }
}

const PASSING: ReadonlySet<string> = new Set(['unreachable', 'timeout', 'unavailable', 'internal'])

const isFinal = ({ code }: TaskmillError): boolean => !PASSING.has(code)

/** What broke a stream is an error of the connection. */
const asFailure = (error: unknown): TaskmillError =>
  error instanceof TaskmillError
    ? error
    : new TaskmillError(`the stream broke: ${error instanceof Error ? error.message : error}`, {
        ...{ code: 'unreachable', cause: error },
      })
