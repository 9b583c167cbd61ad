/** Values of query parameters. Pure. All throw 400 with the parameter, its value and the allowed values. */
import { badRequest } from '../../shared/contract/errors.ts'
import { didYouMean } from '../../shared/request/unknown-names.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'

/** Most values of one parameter. */
const MAX_VALUES = 32

/** Values of a parameter that may be repeated. */
export function repeatedValues(name: string, given: string | string[] | undefined): string[] {
  const values = [given ?? []].flat()
  if (values.length > MAX_VALUES) throw badRequest(`${name} has ${values.length} values (at most ${MAX_VALUES})`)
  return values
}

/** Values of a parameter, which may be repeated and may hold several values with commas between them. */
export function valuesOf(name: string, given: string | string[] | undefined): string[] {
  const texts = [given ?? []].flat()
  return repeatedValues(
    name,
    texts.flatMap((text) => text.split(',')),
  )
}

/** Values of a parameter, each one of `known`. */
export const knownValues = <V extends string>(
  name: string,
  given: string | string[] | undefined,
  known: readonly V[],
): V[] =>
  valuesOf(name, given).map((value) => {
    if ((known as readonly string[]).includes(value)) return value as V
    throw invalidValue(name, value, known)
  })

export const invalidValue = (name: string, value: string, known: readonly string[]) =>
  badRequest(
    `invalid ${name} ${JSON.stringify(value)}: expected ${known.join(', ')}${didYouMean(nearestName(value, known))}`,
  )

/** The number of entries of a page, `standard` where it is not given. */
export function limitOf(text: string | undefined, { most, standard }: { most: number; standard: number }): number {
  if (text === undefined) return standard
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (limit >= 1 && limit <= most) return limit
  throw badRequest(`invalid limit ${JSON.stringify(text)}: expected a whole number from 1 to ${most}`)
}

/** A parameter without a value is true. */
export function truthOf(name: string, text = 'false'): boolean {
  if (text === 'true' || text === '1' || text === '') return true
  if (text === 'false' || text === '0') return false
  throw badRequest(`invalid ${name} ${JSON.stringify(text)}: expected true or false`)
}

/** RFC 3339. In a query, a `+` that is not encoded arrives as a space. */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+ -]\d{2}:\d{2})$/i

/** Milliseconds since 1970. */
export function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = TIME.test(text) ? Date.parse(text.replace(' ', '+')) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw badRequest(`invalid ${name} ${JSON.stringify(text)}: expected a time such as 2026-01-31T09:30:00Z`)
}

export const invalidCursor = (cursor: string) =>
  badRequest(`invalid cursor ${JSON.stringify(cursor)}: expected the X-Next-Cursor of an earlier answer`)

export const MISSING_REPLICAS =
  'With a database: numbers of the replicas that the list lacks, because they do not answer, or nobody has adopted their graphs yet.'

/** Names the cursor of the next page; absent on the last. */
export const NEXT_CURSOR_HEADER = 'x-next-cursor'
