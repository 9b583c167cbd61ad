/** Looks at the database when another replica rings, and at intervals because rings may get lost. One look at a time. */
import { messageOf, ServiceError } from '../../../shared/contract/errors.ts'
import { mayPass } from './database.ts'
import { databaseFault } from './database-fault.ts'

/** Maximum milliseconds between two looks, and minimum looks per lease. */
const LOOK_MS = 500
const LOOKS_PER_LEASE = 10

export interface LooksOptions {
  readonly leaseMs: number
  readonly look: () => Promise<void>
  /** Called after a look that failed because the database was away. The next look may succeed. */
  readonly onAway: (error: unknown) => void
  /** Called after a look that failed for another reason, once until a look succeeds or fails for a new one. */
  readonly onFault: (error: unknown) => void
}

export class Looks {
  readonly #options: LooksOptions
  #timer: Timer | undefined
  #isLooking = false
  #isRung = false
  #isStopped = false
  /** The message of the last fault. */
  #fault: string | undefined

  constructor(options: LooksOptions) {
    this.#options = options
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Looks at intervals from now on. */
  start(): void {
    this.#timer = setInterval(() => this.ring(), Math.min(LOOK_MS, this.#options.leaseMs / LOOKS_PER_LEASE))
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }

  /** Looks now, or again after the look under way. */
  ring(): void {
    this.#isRung = true
    if (!this.#isLooking && this.#timer !== undefined) void this.#lookWhileRung()
  }

  async #lookWhileRung(): Promise<void> {
    this.#isLooking = true
    while (this.#isRung && !this.#isStopped) {
      this.#isRung = false
      try {
        await this.#options.look()
        this.#fault = undefined
      } catch (error) {
        if (!this.#isStopped) this.#tell(error)
      }
    }
    this.#isLooking = false
  }

  #tell(error: unknown): void {
    const { onAway, onFault } = this.#options
    if (error instanceof ServiceError || mayPass(databaseFault(error))) {
      onAway(error)
      return
    }
    const isKnown = this.#fault === messageOf(error)
    this.#fault = messageOf(error)
    if (!isKnown) onFault(error)
  }
}
