/** Large results, which are kept in files instead of memory, journal and snapshots. Pure. */

/** Minimum characters of JSON of a result that is kept in a file. */
export const LARGE_RESULT_CHARACTERS = 64 * 1024

/**
 * Minimum characters of JSON of a result that is kept in a file if later tasks may take it over (`cache`). They share the file.
 * With a copy of 60,000 bytes each, 60,000 such tasks took 4 GB on disk, and as much memory after a restart.
 */
export const SHARED_RESULT_CHARACTERS = 4 * 1024

/** A reference to a result in a file of the data directory. */
export class ResultFile {
  constructor(readonly name: string) {}

  /** Bytes of the file. 0 for a name of an earlier version, which does not tell. */
  get bytes(): number {
    return Number(RESULT_FILE_NAME.exec(this.name)?.[2] ?? 0)
  }
}

/** Names of result files: graph, position, attempt, checksum, bytes. No other file is opened or removed. */
export const RESULT_FILE_NAME = /^\d+-\d+-\d+(?:-([0-9a-f]{8})(?:-(\d{1,15}))?)?\.json$/

/** A result from a file as JSON text, or the reason why it is lost. */
export type StoredResult = { readonly json: string } | { readonly lost: string }

/** Assumed characters of a number, a boolean or null. */
const SCALAR_CHARACTERS = 4

/** Whether `value` has about `limit` characters or more as JSON. Stops counting at the limit. */
export const isLargeJson = (value: unknown, limit = LARGE_RESULT_CHARACTERS): boolean =>
  aboutCharacters(value, limit) >= limit

/** Characters of `value` as JSON, about. Stops counting at `limit`. */
export function aboutCharacters(value: unknown, limit = Number.POSITIVE_INFINITY): number {
  if (typeof value === 'string') return value.length + 2
  if (value === null || typeof value !== 'object') return SCALAR_CHARACTERS
  let characters = 0
  let open: unknown[] | undefined // most results are flat and need none
  for (let next: unknown = value; next !== undefined; next = open?.pop()) {
    if (typeof next === 'string') characters += next.length + 2
    else if (next === null || typeof next !== 'object') characters += SCALAR_CHARACTERS
    else if (Array.isArray(next)) {
      characters += next.length
      if (characters + next.length >= limit) return characters + next.length
      open ??= []
      for (const element of next) open.push(element ?? null)
    } else {
      for (const key in next) {
        const member = (next as Record<string, unknown>)[key]
        characters += key.length + 4
        if (typeof member === 'string') characters += member.length
        else if (member !== null && typeof member === 'object') {
          open ??= []
          open.push(member)
        } else characters += SCALAR_CHARACTERS
      }
    }
    if (characters >= limit) break
  }
  return characters
}
