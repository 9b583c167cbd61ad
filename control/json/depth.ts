/** Which JSON values of a request can be kept: not nested too deep, and with numbers that JSON can write. Pure. */

/**
 * Levels of arrays and objects that a value may have. Deeper values exhaust the stack of the functions that walk them.
 */
export const MAX_JSON_DEPTH = 200

/** Whether `value` has at most `levels` levels of arrays and objects. */
export function isWithinDepth(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (value === null || typeof value !== 'object') return true
  if (levels === 0) return false
  if (Array.isArray(value)) {
    for (const member of value) {
      if (member !== null && typeof member === 'object' && !isWithinDepth(member, levels - 1)) return false
    }
    return true
  }
  // Without Object.values: a copy of every object would take longer than the parser did.
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    if (member !== null && typeof member === 'object' && !isWithinDepth(member, levels - 1)) return false
  }
  return true
}

/** Why a value of a request cannot be kept. Undefined if it can. */
export function valueFault(value: unknown, levels = MAX_JSON_DEPTH): string | undefined {
  if (!isWithinDepth(value, levels)) return `nested deeper than ${levels} levels`
  return hasInfinity(value) ? 'a number is out of range' : undefined
}

/** JSON.parse reads 1e400 as Infinity, which JSON.stringify writes as null. */
function hasInfinity(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return isInfinity(value)
  if (Array.isArray(value)) return value.some(hasInfinity)
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    if (typeof member === 'object' ? hasInfinity(member) : isInfinity(member)) return true
  }
  return false
}

const isInfinity = (value: unknown): boolean => value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY
