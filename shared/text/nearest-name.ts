/** Finds the known name that a misspelt one probably means. Pure. */

/** Longest name that is compared. It limits the work to 64 × 64 steps per known name. */
export const MAX_COMPARED_CHARACTERS = 64

/** Least lengths of names that may differ by one, two and three edits. Shorter names are near to too many others. */
const EDITS_FROM_CHARACTERS = [3, 5, 9] as const

/** Names of the same field in other systems, in snake case. Of several values the first known one counts. */
export type Synonyms = Readonly<Record<string, string | readonly string[]>>

/**
 * The name of `known` that `name` probably means; undefined if none is near.
 *
 * In this order: a synonym; the same letters in another spelling (`dependsOn`); more or fewer words at the end (`memory` for
 * `memory_bytes`); the fewest edits, up to a limit that grows with the length. Of equally near names the first of `known`
 * counts.
 */
export function nearestName(name: string, known: Iterable<string>, synonyms: Synonyms = {}): string | undefined {
  if (name === '' || name.length > MAX_COMPARED_CHARACTERS) return undefined
  const names = [...known]
  const folded = fold(name)
  const words = wordsOf(name)
  const synonym = synonymsOf(words, synonyms).find((candidate) => names.includes(candidate))
  if (synonym !== undefined) return synonym
  const respelt = names.find((candidate) => fold(candidate) === folded)
  if (respelt !== undefined) return respelt
  const extended = names.find((candidate) => isWholeWordPrefix(words, wordsOf(candidate)))
  if (extended !== undefined) return extended
  return leastEdited(folded, names)
}

/** The known name that a name in snake case is a synonym of. */
export function synonymsOf(words: string, synonyms: Synonyms): readonly string[] {
  const found = Object.hasOwn(synonyms, words) ? synonyms[words]! : []
  return typeof found === 'string' ? [found] : found
}

function leastEdited(folded: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined
  let bound = EDITS_FROM_CHARACTERS.filter((from) => folded.length >= from).length
  for (const candidate of names) {
    const distance = boundedDistance(folded, fold(candidate), bound)
    if (distance === undefined) continue
    nearest = candidate
    bound = distance - 1
    if (bound < 0) break
  }
  return nearest
}

/** The letters and digits of a name, in lower case. */
const fold = (name: string): string => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

/** In snake case: `dependsOn` and `depends-on` are `depends_on`. */
const wordsOf = (name: string): string =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[-. ]/g, '_')

const isWholeWordPrefix = (a: string, b: string): boolean => b.startsWith(`${a}_`) || a.startsWith(`${b}_`)

/**
 * Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment distance);
 * undefined if there are more than `bound`.
 */
export function boundedDistance(a: string, b: string, bound: number): number | undefined {
  if (bound < 0 || Math.abs(a.length - b.length) > bound) return undefined
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1))
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) edits = Math.min(edits, beforeLast[j - 2]! + 1)
      row.push(edits)
      if (edits < least) least = edits
    }
    if (least > bound && Math.min(...last) > bound) return undefined
    beforeLast = last
    last = row
  }
  const distance = last[b.length]!
  return distance <= bound ? distance : undefined
}
