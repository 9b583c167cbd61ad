/** A result that is too large to be held in memory, in the journal and in every snapshot: it lies in a file. Pure. */

/** Characters of JSON from which a result lies in a file of its own. */
export const LARGE_RESULT_CHARACTERS = 64 * 1024

/** Stands for a result that lies in a file of the data directory. */
export class ResultFile {
  constructor(readonly name: string) {}
}

/** Names of result files: graph, position, attempt, checksum. Nothing else is ever opened or removed. */
export const RESULT_FILE_NAME = /^\d+-\d+-\d+(?:-([0-9a-f]{8}))?\.json$/

/** A result that was in a file, as JSON text, or what became of it. */
export type StoredResult = { readonly json: string } | { readonly lost: string }

/** What a number, a boolean or null counts. */
const SCALAR_CHARACTERS = 4

/** Whether `value` is at least `limit` characters long as JSON; looks no further than it has to. */
export function isLargeJson(value: unknown, limit = LARGE_RESULT_CHARACTERS): boolean {
  if (typeof value === 'string') return value.length + 2 >= limit
  if (value === null || typeof value !== 'object') return SCALAR_CHARACTERS >= limit
  let characters = 0
  let open: unknown[] | undefined // most results are flat and need none
  for (let next: unknown = value; next !== undefined; next = open?.pop()) {
    if (typeof next === 'string') characters += next.length + 2
    else if (next === null || typeof next !== 'object') characters += SCALAR_CHARACTERS
    else if (Array.isArray(next)) {
      characters += next.length
      if (characters + next.length >= limit) return true
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
    if (characters >= limit) return true
  }
  return false
}
