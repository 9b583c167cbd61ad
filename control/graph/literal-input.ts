/** Input that is data, whatever it looks like, for a task of a graph, whose placeholders are read. Pure. */
import { isObject, type JsonObject } from '../../shared/json.ts'
import { isYieldDue, type Steps } from '../../shared/steps.ts'
import { fill, findPlaceholders, hasPlaceholderName, MAX_PLACEHOLDERS } from './placeholders.ts'
import { setMember } from './plain-json.ts'

/**
 * `input` with a `$literal` around each object that would be a placeholder, so that a task gets `input` itself. The
 * graph means the same wherever it is read: in a journal, in a rerun and in another service.
 */
export function* literalInput(input: unknown): Steps<unknown> {
  const { places, faults } = yield* findPlaceholders(input)
  if (faults.length > 0) return yield* withLiteralMembers(input)
  const literals = places.map(({ path }) => {
    const found = path.reduce((value: unknown, name) => (value as JsonObject)[name], input)
    return { $literal: found }
  })
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
