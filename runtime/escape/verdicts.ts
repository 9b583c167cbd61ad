/**
 * What is known of all attempts after their runs: each that can be made has a verdict. Pure.
 *
 * What is not proved to be blocked is open. An attempt without a line is one that the sandbox did not survive; that is as
 * it should be where the kernel ended it for going past its limit. And who keeps the baits is believed before the program.
 */
import type { Attempt, Listed } from './attempts.ts'

/** One run of the program in a sandbox: what it said, and how the sandbox ended, in words. */
export interface EscapeRun {
  readonly said: readonly Attempt[]
  readonly ending: string
  /** Whether the kernel ended it for using more than it may. */
  readonly isEndedByLimit: boolean
}

/** Which attempt takes a bait, by the kind of the bait. */
const TAKEN_BY: Readonly<Record<string, string>> = {
  abstract: 'connect_abstract',
  tcp: 'connect_loopback',
  service: 'ask_service',
  unix: 'connect_hidden',
  pid: 'kill_host',
}

/** In the order of `listed`. `together` is the run of those that leave the sandbox alone, `alone` the others' by name. */
export function verdicts(
  listed: readonly Listed[],
  together: EscapeRun,
  alone: ReadonlyMap<string, EscapeRun>,
  taken: readonly string[],
): Attempt[] {
  const takers = new Map(taken.map((bait) => [TAKEN_BY[bait.split('=')[0]!], bait]))
  return listed.map(({ name, what }) => {
    const bait = takers.get(name)
    if (bait !== undefined) return { name, verdict: 'open', detail: `it ${what}: it did, on the host (${bait})` }
    const run = alone.get(name) ?? together
    const line = run.said.find((attempt) => attempt.name === name)
    if (line !== undefined) return line
    const isBlocked = alone.has(name) && run.isEndedByLimit
    return { name, verdict: isBlocked ? 'blocked' : 'open', detail: `it ${what}: ${run.ending}` }
  })
}

/** Suffix of attempts that only the default sandbox lets through. */
const BY_DEFAULT = ' (in the default sandbox)'

/** Of the same attempts in two sandboxes: open where one of them is open, blocked where one blocks it and none lets it through. */
export function worstOf(strictest: readonly Attempt[], byDefault: readonly Attempt[]): Attempt[] {
  return strictest.map((attempt, i) => {
    const other = byDefault[i]!
    if (attempt.verdict === 'open' || other.verdict === 'not_applicable') return attempt
    if (other.verdict === 'open') return { ...other, detail: other.detail + BY_DEFAULT }
    return attempt.verdict === 'not_applicable' ? other : attempt
  })
}
