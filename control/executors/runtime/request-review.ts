/** Checks a request against the rules of the runtime service that do not depend on its host. Pure. */
import { RequestFault } from '../../../shared/request/fault.ts'
import { validRequest } from '../../../shared/request/validate.ts'
import { invalidInput } from '../executor.ts'

/**
 * Maximum values (fields, arguments, variables) of a reviewed request. More would block the event loop during a
 * submission.
 */
export const MAX_REVIEWED_VALUES = 1024

/** Maximum characters of a reviewed request. */
export const MAX_REVIEWED_CHARACTERS = 4 * 1024 * 1024

/** Each value counts as this many characters in addition to its own. */
const CHARACTERS_PER_VALUE = MAX_REVIEWED_CHARACTERS / MAX_REVIEWED_VALUES

/**
 * Throws the `invalid_input` with which the runtime service would refuse `body`. `body` has an id and no unknown
 * fields. Does not check a request beyond the limits above.
 */
export function reviewRequest(body: object): void {
  if (roomAfter(body, MAX_REVIEWED_CHARACTERS) < 0 || faultOf(body) === undefined) return
  // JSON turns a number that is too large into null, which the service takes for an absent field.
  const fault = faultOf(JSON.parse(JSON.stringify(body)))
  if (fault !== undefined) throw invalidInput(fault)
}

function faultOf(body: object): string | undefined {
  try {
    validRequest(body, '', 'ignore')
    return undefined
  } catch (error) {
    if (error instanceof RequestFault) return error.message
    throw error
  }
}

/** `room` minus the size of `value` in characters. Stops counting below 0. */
function roomAfter(value: unknown, room: number): number {
  let left = room - CHARACTERS_PER_VALUE
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left
  if (Array.isArray(value)) {
    // for...in would first list all indexes of a large array
    for (let i = 0; i < value.length && left >= 0; i++) left = roomAfter(value[i], left)
    return left
  }
  for (const key in value) {
    left = roomAfter((value as Record<string, unknown>)[key], left - key.length)
    if (left < 0) break
  }
  return left
}
