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

/** How often a test kills at random moments. `make crash ROUNDS=N` asks for another number. */
export const roundsOf = ({ usual, nightly }: { usual: number; nightly: number }): number => {
  const { TASKMILL_ROUNDS, TASKMILL_NIGHTLY } = process.env
  if (TASKMILL_ROUNDS !== undefined && TASKMILL_ROUNDS !== '') return wholeNumber('TASKMILL_ROUNDS', TASKMILL_ROUNDS)
  return TASKMILL_NIGHTLY === undefined ? usual : nightly
}

function wholeNumber(variable: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new Error(`${variable} is ${JSON.stringify(text)}: expected a whole number from 1 to 999999999`)
}

/** Of most of them. */
export const ROUNDS = roundsOf({ usual: 30, nightly: 500 })

/** Milliseconds that a test with so many kills may take. A busy machine takes some seconds for each of them. */
export const limitOf = (rounds: number): number => (60 + rounds) * 10_000

/** Of all choices of a run. `make crash SEED=N` repeats those of an earlier one. */
export const SEED = process.env.TASKMILL_SEED
  ? wholeNumber('TASKMILL_SEED', process.env.TASKMILL_SEED)
  : (Date.now() % 999_999_999) + 1
