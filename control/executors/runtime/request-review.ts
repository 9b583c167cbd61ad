/** Whether every runtime service refuses a request: the rules that it applies before it looks at its host. Pure. */
import { RequestFault } from '../../../shared/runtime-request/fault.ts'
import { validRequest } from '../../../shared/runtime-request/validate.ts'
import { invalidInput } from '../executor.ts'

/** Values of a request that is reviewed: fields, arguments, variables. A submission must not hold the event loop with more. */
export const MAX_REVIEWED_VALUES = 1024

/** Characters of such a request. */
export const MAX_REVIEWED_CHARACTERS = 4 * 1024 * 1024

/** A value counts as so many characters besides its own. */
const CHARACTERS_PER_VALUE = MAX_REVIEWED_CHARACTERS / MAX_REVIEWED_VALUES

/**
 * Throws the `invalid_input` with which the runtime service refuses `body`, which has an id and no field that is unknown there. A
 * request that is larger than the limits above is not looked at.
 */
export function reviewRequest(body: object): void {
  if (roomAfter(body, MAX_REVIEWED_CHARACTERS) < 0 || faultOf(body) === undefined) return
  // The service reads JSON, which turns a number beyond the largest one into null, and so into an absent field.
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

/** What `value` leaves of `room`, in characters; below 0 where it does not fit, as soon as that is known. */
function roomAfter(value: unknown, room: number): number {
  let left = room - CHARACTERS_PER_VALUE
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left
  if (Array.isArray(value)) {
    // for...in would list all indexes of a large one first
    for (let i = 0; i < value.length && left >= 0; i++) left = roomAfter(value[i], left)
    return left
  }
  for (const key in value) {
    left = roomAfter((value as Record<string, unknown>)[key], left - key.length)
    if (left < 0) break
  }
  return left
}
