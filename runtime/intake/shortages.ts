/** What a task asks for and the host lacks: a strict task is refused at the first, an adaptive one does without each. Pure. */
import { Refusal } from '../refusal.ts'
import { type Capability, type Missing, unavailable } from './capability-set.ts'

export class Shortages {
  readonly #isStrict: boolean
  /** A sentence for each, in the order in which they were met. */
  readonly reasons: string[] = []

  constructor(isStrict: boolean) {
    this.#isStrict = isStrict
  }

  /**
   * Whether `what` is to be had. Where it is missing, throws 400 `unsupported_capability` for a strict task, and for
   * another notes that it is missing and what comes `instead`.
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
