/**
 * SIGTERM and SIGINT of a service, from the first line of its start on.
 *
 * A start that is stopped throws `StartStopped` at its next wait, so that it can end the processes that it started. The
 * default action of the signals would leave them running.
 */
import { unlessAborted } from './unless-aborted.ts'

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** The service was told to stop before it listened. It has accepted nothing and exits with 0. */
export class StartStopped extends Error {
  readonly signal: NodeJS.Signals

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal} during the start`)
    this.signal = signal
  }
}

export class StopSignals {
  readonly #stopped = new AbortController()
  #onSignal: (signal: NodeJS.Signals) => void = (signal) => this.#stopped.abort(new StartStopped(signal))

  /** Handles the signals of this process from now on. */
  constructor() {
    for (const name of STOP_SIGNALS) process.on(name, (signal) => this.#onSignal(signal))
  }

  /** Aborted with `StartStopped` when a signal arrives during the start. */
  get duringStart(): AbortSignal {
    return this.#stopped.signal
  }

  /** The value of `step`. Throws `StartStopped` as soon as a signal arrives; `step` then goes on unheeded. */
  unlessStopped<T>(step: Promise<T>): Promise<T> {
    return unlessAborted(step, this.duringStart, () => this.duringStart.reason as StartStopped)
  }

  /** Ends the start: calls `onSignal` for each signal from now on. Throws `StartStopped` if one arrived before. */
  started(onSignal: (signal: NodeJS.Signals) => void): void {
    this.duringStart.throwIfAborted()
    this.#onSignal = onSignal
  }
}
