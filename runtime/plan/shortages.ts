/**
 * What a task asks for and the host lacks. A strict task is refused at the first shortage, an adaptive task goes
 * without. Pure.
 */
import { Refusal } from '../refusal.ts'
import { type Capability, type Missing, unavailable } from './capability-set.ts'

export class Shortages {
  readonly #isStrict: boolean
  /** A sentence for each shortage, in the order in which they were found. */
  readonly reasons: string[] = []

  constructor(isStrict: boolean) {
    this.#isStrict = isStrict
  }

  /**
   * Whether `what` is available. Otherwise throws 400 `unsupported_capability` for a strict task, and for an adaptive
   * task notes the shortage and what it gets `instead`.
   */
  has(what: string, capability: Capability, instead: string): boolean {
    if (capability.isAvailable) return true
    this.refuseStrict(what, capability)
    this.reasons.push(`${what} is unavailable (${capability.reason}): ${instead}`)
    return false
  }

  /** Throws 400 `unsupported_capability` for a strict task. */
  refuseStrict(what: string, capability: Missing): void {
    if (!this.#isStrict) return
    const { reason, remedy } = capability
    throw new Refusal('unsupported_capability', unavailable(what, capability), { capability: what, reason, remedy })
  }
}
