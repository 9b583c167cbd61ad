/** A failed step of the portable launcher: its number in fault.h, and the errno. */
import { constants } from 'node:os'
import { systemCodeOf } from '../../shared/contract/errors.ts'

export class Fault extends Error {
  constructor(
    readonly step: string,
    /** The name of the error: ENOENT. */
    readonly code: string,
  ) {
    super(`${step}: ${code}`)
  }
  get errno(): number {
    return (constants.errno as Readonly<Record<string, number>>)[this.code] ?? 0
  }
}

/** Returns the result of `action`. A system error becomes the `Fault` of `step`. */
export function attempt<T>(step: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === undefined) throw error
    throw new Fault(step, code)
  }
}
