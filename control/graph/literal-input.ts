/** Input that is data, whatever it looks like, for a task of a graph, whose placeholders are read. Pure. */
import type { JsonObject } from '../../shared/json.ts'
import type { Steps } from '../../shared/steps.ts'
import { fill, findPlaceholders } from './placeholders.ts'

/**
 * `input` with a `$literal` around each object that would be a placeholder, so that a task gets `input` itself. The
 * graph means the same wherever it is read: in a journal, in a rerun and in another service.
 */
export function* literalInput(input: unknown): Steps<unknown> {
  const { places, faults } = yield* findPlaceholders(input)
  if (faults.length > 0) return { $literal: input }
  const literals = places.map(({ path }) => {
    const found = path.reduce((value: unknown, name) => (value as JsonObject)[name], input)
    return { $literal: found }
  })
  return yield* fill(input, places, literals)
}
