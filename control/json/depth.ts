/** Limits the nesting of JSON values. Pure. */

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
