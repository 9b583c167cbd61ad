/**
 * Patterns for files below a directory: `*` and `?` stand for characters of one name, `**` for any number of names. A pattern
 * that matches a directory matches all below it. Pure.
 */

type Names = readonly string[]

export class OutputPatterns {
  readonly #patterns: readonly Names[]

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.map((pattern) => pattern.split('/'))
  }

  /** Whether a pattern matches the path with these names. */
  matches(names: Names): boolean {
    return this.#patterns.some((pattern) => matchesAll(pattern, names, '**', isNameLike))
  }

  /** Whether a pattern may match a path below the directory with these names. */
  mayMatchBelow(names: Names): boolean {
    return this.#patterns.some((pattern) => {
      const fixed = pattern.indexOf('**')
      if (fixed < 0 && pattern.length <= names.length) return false
      const end = Math.min(names.length, fixed < 0 ? names.length : fixed)
      return names.slice(0, end).every((name, i) => isNameLike(pattern[i]!, name))
    })
  }
}

const isNameLike = (pattern: string, name: string): boolean =>
  matchesAll([...pattern], [...name], '*', (one, character) => one === '?' || one === character)

/**
 * Whether `pattern` matches all of `items`, where `star` stands for any number of them. After a mismatch only the last star
 * takes one item more, so the time is at most the product of both lengths.
 */
function matchesAll(
  pattern: Names,
  items: Names,
  star: string,
  isLike: (pattern: string, item: string) => boolean,
): boolean {
  let p = 0
  let i = 0
  let lastStar = -1
  let itemOfStar = 0
  while (i < items.length) {
    if (pattern[p] === star) {
      lastStar = p++
      itemOfStar = i
    } else if (p < pattern.length && isLike(pattern[p]!, items[i]!)) {
      p++
      i++
    } else if (lastStar >= 0) {
      p = lastStar + 1
      i = ++itemOfStar
    } else return false
  }
  while (pattern[p] === star) p++
  return p === pattern.length
}
