/** Protects input that is plain data from being read as placeholders. Pure. */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { isObject, type JsonObject } from '../../shared/text/json.ts'
import { fill, findPlaceholders, hasPlaceholderName, MAX_PLACEHOLDERS, valueAt } from './placeholders.ts'
import { setMember } from './plain-json.ts'

/**
 * Wraps each object in `input` that would be a placeholder in a `$literal`, so that the task gets `input` itself. The
 * graph has the same meaning in the journal, in a rerun and in another service.
 */
export function* literalInput(input: unknown): Steps<unknown> {
  const { places, faults } = yield* findPlaceholders(input)
  if (faults.length > 0) return yield* withLiteralMembers(input)
  const literals = places.map(({ path }) => ({ $literal: valueAt(input, path) }))
  return yield* fill(input, places, literals)
}

/** `input` with a `$literal` around each member that would hold a placeholder or a mistake in one. */
function* withLiteralMembers(input: unknown): Steps<unknown> {
  if (!isObject(input) || hasPlaceholderName(input)) return { $literal: input }
  const members = Object.entries(input)
  if (members.length > MAX_PLACEHOLDERS) return { $literal: input }
  const copy: JsonObject = {}
  for (let i = 0; i < members.length; i++) {
    const [name, member] = members[i]!
    const { places, faults } = yield* findPlaceholders(member)
    setMember(copy, name, places.length + faults.length === 0 ? member : { $literal: member })
    if (isYieldDue(i)) yield
  }
  return copy
}
