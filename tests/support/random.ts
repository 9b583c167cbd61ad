/** A random generator with a seed, for choices that can be repeated. */

/** A whole number from 0 up to, and without, `below`. */
export type Random = (below: number) => number

/** A small generator of its own, so that a seed gives the same choices everywhere. */
export function randomNumbers(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0
    return Math.floor((((state ^ (state >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** How often a test kills at random moments. */
export const roundsOf = ({ usual, nightly }: { usual: number; nightly: number }): number =>
  process.env.TASKMILL_NIGHTLY === undefined ? usual : nightly

/** Of most of them. */
export const ROUNDS = roundsOf({ usual: 30, nightly: 500 })

/** Milliseconds that a test with so many kills may take. A busy machine takes some seconds for each of them. */
export const limitOf = (rounds: number): number => (60 + rounds) * 10_000
export const SEED = Number(process.env.TASKMILL_SEED ?? Date.now() % 1_000_000_000)
