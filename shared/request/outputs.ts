/** Which files of its workspace a task keeps, as patterns. Pure. */
import { requestFault } from './fault.ts'
import { checkText, shortened } from './text.ts'

/** Patterns of one task, and characters of each and of all together. */
export const MAX_OUTPUTS = 64
export const MAX_PATTERN_CHARACTERS = 1_024
export const MAX_PATTERNS_CHARACTERS = 4_096

/** Throws `RequestFault` with the first fault. */
export function validOutputs(given: readonly string[]): readonly string[] {
  if (given.length > MAX_OUTPUTS) throw requestFault(`outputs has ${given.length} entries (at most ${MAX_OUTPUTS})`)
  let characters = 0
  for (const [i, pattern] of given.entries()) {
    const path = `outputs[${i}]`
    checkText(path, pattern)
    if (pattern.length > MAX_PATTERN_CHARACTERS) {
      throw requestFault(`${path} has ${pattern.length} characters (at most ${MAX_PATTERN_CHARACTERS})`)
    }
    if (pattern.split('/').some((name) => ['', '.', '..'].includes(name))) {
      throw requestFault(`${path} must be a path below the workspace, such as dist/**, got ${shortened(pattern)}`)
    }
    characters += pattern.length
  }
  if (characters <= MAX_PATTERNS_CHARACTERS) return given
  throw requestFault(
    `outputs has ${characters} characters (at most ${MAX_PATTERNS_CHARACTERS} in all patterns together)`,
  )
}
