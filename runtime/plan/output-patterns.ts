/**
 * Patterns for files below a directory: `*` and `?` stand for characters of one name, `**` for any number of names. A pattern
 * that matches a directory matches all below it. Pure.
 *
 * A walk through the tree carries the places in the patterns that the names so far lead to. So each name is compared once
 * with the names of the patterns that may come next, however many `**` there are.
 */
import { Glob } from '../../shared/text/glob.ts'

/** What may come next: indexes into the names of all patterns. */
export type Places = readonly number[]

/** A pattern matches all from here on. */
const ALL: Places = [-1]

/** Any number of names. */
const ANY = '**'

/** A name, a glob over a name, any names, or the end of a pattern. */
type Sign = { readonly name: string } | Glob | typeof ANY | null

export class OutputPatterns {
  readonly #signs: readonly Sign[]
  /** The places before the first name. */
  readonly start: Places

  constructor(patterns: readonly string[]) {
    const signs: Sign[] = []
    const start = new Set<number>()
    for (const pattern of new Set(patterns.map(withoutRuns))) {
      const first = signs.length
      signs.push(...pattern.split('/').map(signOf), null)
      addPlaces(signs, first, start)
    }
    this.#signs = signs
    this.start = [...start]
  }

  /** The places after one more name. None if nothing with this name, or below it, can match. */
  enter(places: Places, name: string): Places {
    if (places === ALL) return ALL
    const next = new Set<number>()
    for (const place of places) {
      const sign = this.#signs[place]!
      if (sign === ANY) addPlaces(this.#signs, place, next)
      else if (sign !== null && isLike(sign, name)) addPlaces(this.#signs, place + 1, next)
    }
    for (const place of next) if (this.#signs[place] === null) return ALL
    return [...next]
  }
}

/** Whether a pattern matches the path that leads to `places`. */
export const isMatch = (places: Places): boolean => places === ALL

/** The same pattern with one `**` in place of several in a row. */
const withoutRuns = (pattern: string): string =>
  pattern
    .split('/')
    .filter((name, i, names) => name !== ANY || names[i - 1] !== ANY)
    .join('/')

function signOf(name: string): Sign {
  if (name === ANY) return ANY
  return /[*?]/.test(name) ? new Glob(name) : { name }
}

const isLike = (sign: { readonly name: string } | Glob, name: string): boolean =>
  sign instanceof Glob ? sign.matches(name) : sign.name === name

/** Adds `place`, and what follows it if it stands for no name. That is no `**` again: patterns have no runs of them. */
function addPlaces(signs: readonly Sign[], place: number, places: Set<number>): void {
  places.add(place)
  if (signs[place] === ANY) places.add(place + 1)
}
