/** The JSON value that a text of a task contains. Nobody has checked the text, so it may try to stop the service. Pure. */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { JsonSyntaxError, parseText } from '../../shared/text/json-bytes.ts'
import { MAX_JSON_DEPTH } from './depth.ts'

/** The value that `text` contains, or what is wrong with the text: completes `/result of task a `. */
export function* jsonInText(text: string): Steps<{ readonly value: unknown } | string> {
  // The parser works for seconds on a text that is nested deeply, before it gives up.
  if (yield* opensTooDeep(text)) return `is nested deeper than ${MAX_JSON_DEPTH} levels`
  try {
    const value = parseText(text)
    return (yield* hasInfinity(value)) ? 'has a number that is too large' : { value }
  } catch (error) {
    if (error instanceof JsonSyntaxError) return `is not JSON: ${error.message}`
    throw error
  }
}

/** Characters looked at between two yields. */
const CHARACTERS_PER_YIELD = 64 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN: ReadonlySet<number> = new Set([0x5b, 0x7b])
const CLOSE: ReadonlySet<number> = new Set([0x5d, 0x7d])

/** Whether more arrays and objects are open at any place of `text` than a value may have levels. */
function* opensTooDeep(text: string): Steps<boolean> {
  let depth = 0
  let isInText = false
  let pauseAt = CHARACTERS_PER_YIELD
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (at >= pauseAt) {
      pauseAt = at + CHARACTERS_PER_YIELD
      yield
    }
    if (character === QUOTE) isInText = !isInText
    else if (isInText) at += character === BACKSLASH ? 1 : 0
    else if (OPEN.has(character)) depth++
    else if (CLOSE.has(character)) depth--
    if (depth > MAX_JSON_DEPTH) return true
  }
  return false
}

/** Whether `value` has a number like `1e999`, which the parser takes for infinite. No JSON text could keep it. */
function* hasInfinity(value: unknown): Steps<boolean> {
  const rest = [value]
  let steps = 0
  while (rest.length > 0) {
    const found = rest.pop()
    if (typeof found === 'number' && !Number.isFinite(found)) return true
    if (isYieldDue(steps++)) yield
    if (typeof found !== 'object' || found === null) continue
    for (const member of Array.isArray(found) ? found : Object.values(found)) {
      rest.push(member)
      if (isYieldDue(steps++)) yield
    }
  }
  return false
}
