/**
 * Globs: `*` matches any characters, including none and line ends; `?` matches one character. Pure.
 *
 * A glob is a state machine, which is simulated in one pass over the text, without backtracking. The set of active
 * states is kept as bits. So the time is proportional to the length of the text times the length of the glob divided by
 * 32, for every text and glob. A text of 1 Mi characters and the longest glob take about 0.1 s, in steps.
 */
import { runSync, type Steps } from '../process/steps.ts'

/** Maximum characters of a glob. */
export const MAX_GLOB_CHARACTERS = 1_000

/** Characters of the text per step, for a glob of up to 32 states. Longer globs get shorter steps. */
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

/** Words of 32 bits for the states of a glob with `length` signs: one before each sign, and one at the end. */
const wordsFor = (length: number): number => Math.floor(length / BITS) + 1

function* matching(
  text: string,
  length: number,
  loops: Uint32Array,
  masks: ReturnType<typeof masksOf>,
): Steps<boolean> {
  const words = wordsFor(length)
  /** Active states. Bit `i`: the text so far matches the part of the glob before sign `i`. */
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

/** The signs of `glob` other than `*`, and the states that loop because of a `*`, as bits. */
function parsed(glob: string): { readonly signs: readonly string[]; readonly loops: Uint32Array } {
  const signs: string[] = []
  const loops = new Uint32Array(Math.floor(glob.length / BITS) + 1)
  for (const sign of glob) {
    if (sign === '*') loops[Math.floor(signs.length / BITS)]! |= 1 << (signs.length % BITS)
    else signs.push(sign)
  }
  return { signs, loops }
}

/** For each character the matching signs, as bits. */
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
