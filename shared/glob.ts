/**
 * Globs over text: `*` stands for any characters, also none and line ends, `?` for one. Pure.
 *
 * A glob is matched in one pass over the text, without backtracking: the pass keeps the set of all places in the glob that
 * the text so far may have led to, as bits. So its time grows with the length of the text times that of the glob divided
 * by 32, whatever they hold: a text of 1 Mi characters and the longest glob take about 0.1 s, in steps.
 */
import { runSync, type Steps } from './steps.ts'

/** Characters of a glob. */
export const MAX_GLOB_CHARACTERS = 1_000

/** Characters of the text between two pauses, with a glob of one word of bits; fewer with a longer one. */
const CHARACTERS_PER_PAUSE = 32 * 1024

const BITS = 32

/** A glob that is matched often. */
export class Glob {
  readonly #length: number
  readonly #loops: Uint32Array
  readonly #masks: ReturnType<typeof masksOf>

  constructor(glob: string) {
    const { signs, loops } = parsed(glob)
    this.#length = signs.length
    this.#loops = loops
    this.#masks = masksOf(signs, wordsFor(signs.length))
  }

  /** Whether the whole of a short text matches. */
  matches(text: string): boolean {
    return runSync(this.steps(text))
  }

  /** Whether the whole of `text` matches. */
  steps(text: string): Steps<boolean> {
    return matching(text, this.#length, this.#loops, this.#masks)
  }
}

/** Whether the whole of `text` matches `glob`. */
export const matchesGlob = (text: string, glob: string): Steps<boolean> => new Glob(glob).steps(text)

/** Words of bits for a place before and behind each of `length` signs. */
const wordsFor = (length: number): number => Math.floor(length / BITS) + 1

function* matching(
  text: string,
  length: number,
  loops: Uint32Array,
  masks: ReturnType<typeof masksOf>,
): Steps<boolean> {
  const words = wordsFor(length)
  /** Bit `i`: the text so far matches what stands before sign `i`. */
  let places = new Uint32Array(words)
  let next = new Uint32Array(words)
  places[0] = 1
  let pause = Math.ceil(CHARACTERS_PER_PAUSE / words)
  for (const character of text) {
    const mask = masks.byCharacter.get(character) ?? masks.ofOthers
    let carry = 0
    let isAlive = 0
    for (let w = 0; w < words; w++) {
      const passed = places[w]! & mask[w]!
      next[w] = (passed << 1) | carry | (places[w]! & loops[w]!)
      carry = passed >>> (BITS - 1)
      isAlive |= next[w]!
    }
    if (isAlive === 0) return false
    ;[places, next] = [next, places]
    if (--pause === 0) {
      pause = Math.ceil(CHARACTERS_PER_PAUSE / words)
      yield
    }
  }
  return (places[Math.floor(length / BITS)]! & (1 << (length % BITS))) !== 0
}

/** The signs of `glob` other than `*`, and the places before which a `*` stands, as bits. */
function parsed(glob: string): { readonly signs: readonly string[]; readonly loops: Uint32Array } {
  const signs: string[] = []
  const loops = new Uint32Array(Math.floor(glob.length / BITS) + 1)
  for (const sign of glob) {
    if (sign === '*') loops[Math.floor(signs.length / BITS)]! |= 1 << (signs.length % BITS)
    else signs.push(sign)
  }
  return { signs, loops }
}

/** For each character the signs that it matches, as bits. */
function masksOf(signs: readonly string[], words: number) {
  const ofOthers = new Uint32Array(words)
  const byCharacter = new Map<string, Uint32Array>()
  signs.forEach((sign, i) => {
    if (sign === '?') ofOthers[Math.floor(i / BITS)]! |= 1 << (i % BITS)
  })
  signs.forEach((sign, i) => {
    if (sign === '?') return
    const mask = byCharacter.get(sign) ?? ofOthers.slice()
    mask[Math.floor(i / BITS)]! |= 1 << (i % BITS)
    byCharacter.set(sign, mask)
  })
  return { byCharacter, ofOthers }
}
