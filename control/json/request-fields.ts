/** The fields of small requests: throws 400 for one that nobody knows, and for one of the wrong form. Pure. */
import type { Static, TSchema } from '@sinclair/typebox'
import { badRequest } from '../../shared/contract/errors.ts'
import { didYouMean, firstUnknown, quoted, type UnknownFields } from '../../shared/request/unknown-names.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import { invalidJson } from './body.ts'
import { checkOf } from './schema-check.ts'

export interface KnownFields {
  readonly names: readonly string[]
  /** Further ones, which no error proposes. */
  readonly free?: readonly string[]
  readonly synonyms?: Synonyms
}

/** Unless `unknownFields` says otherwise, each name of `given` has to be known, or an extension. */
export function refuseUnknownFields(
  given: object,
  { names, free = [], synonyms }: KnownFields,
  unknownFields: UnknownFields,
): void {
  const name = unknownFields === 'refuse' ? firstUnknown(given, new Set([...names, ...free])) : undefined
  if (name !== undefined) {
    throw badRequest(`unknown field ${quoted(name)}${didYouMean(nearestName(name, names, synonyms))}`)
  }
}

/** `given` has to fit `schema`. */
export function refuseWrongForm<T extends TSchema>(given: unknown, schema: T): asserts given is Static<T> {
  const check = checkOf(schema)
  if (check.accepts(given)) return
  const { path, expected } = check.faultOf(given)
  throw invalidJson(`${path}: expected ${expected}`)
}
