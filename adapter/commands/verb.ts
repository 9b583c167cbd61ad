/** The verb of a subcommand that has several, such as `token revoke`. */
import { UsageError } from '../../shared/contract/errors.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'

/** Throws `UsageError` for an unknown one, with the nearest of `verbs`. */
export function verbOf<V extends string>(command: string, given: string, verbs: readonly V[], synonyms: Synonyms): V {
  const verb = verbs.find((known) => known === given)
  if (verb !== undefined) return verb
  const nearest = nearestName(given, verbs, synonyms)
  const remedy = nearest === undefined ? `there are: ${verbs.join(', ')}` : `did you mean "${nearest}"?`
  throw new UsageError(`unknown subcommand "${command} ${given}" (${remedy})`)
}
