/**
 * Gives each listed attempt a verdict from the output of the runs. Pure.
 *
 * An attempt counts as open unless it is proved to be blocked. An attempt without a line ended its sandbox. It counts as
 * blocked if it ran alone and the kernel ended the sandbox for exceeding a limit. What the baits noticed on the host overrides
 * the report of the program.
 */
import type { Attempt, Listed } from './attempts.ts'
import type { Collected } from './baits.ts'

/** One run of the program in a sandbox: its report, and how the sandbox ended, in words. */
export interface EscapeRun {
  readonly said: readonly Attempt[]
  readonly ending: string
  /** Whether the kernel killed it for exceeding its memory limit. */
  readonly isEndedByLimit: boolean
}

/** The attempt that reaches a bait, by the kind of the bait. */
const TAKEN_BY: Readonly<Record<string, string>> = {
  abstract: 'connect_abstract',
  tcp: 'connect_loopback',
  service: 'ask_service',
  unix: 'connect_hidden',
  pid: 'kill_host',
}

/** Verdicts in the order of `listed`. `together` is the run of all harmless attempts, `alone` has the other runs by name. */
export function verdicts(
  listed: readonly Listed[],
  together: EscapeRun,
  alone: ReadonlyMap<string, EscapeRun>,
  { taken, refused }: Collected,
): Attempt[] {
  const takers = byAttempt(taken)
  const refusals = byAttempt(refused)
  return listed.map(({ name, what }) => {
    const bait = takers.get(name)
    if (bait !== undefined) return { name, verdict: 'open', detail: `it ${what}: it did, on the host (${bait})` }
    const refuser = refusals.get(name)
    if (refuser !== undefined) return { name, verdict: 'blocked', detail: `it ${what}: it has no token (${refuser})` }
    const run = alone.get(name) ?? together
    const line = run.said.find((attempt) => attempt.name === name)
    if (line !== undefined) return line
    const isBlocked = alone.has(name) && run.isEndedByLimit
    return { name, verdict: isBlocked ? 'blocked' : 'open', detail: `it ${what}: ${run.ending}` }
  })
}

/** Baits by the attempt that reaches them. */
const byAttempt = (baits: readonly string[]) => new Map(baits.map((bait) => [TAKEN_BY[bait.split('=')[0]!], bait]))

/**
 * Merges the verdicts of two sandboxes: open if either is open, else blocked if either is blocked, else not applicable.
 * `where` says what the second sandbox is, for attempts that only it lets through.
 */
export function worstOf(first: readonly Attempt[], second: readonly Attempt[], where: string): Attempt[] {
  return first.map((attempt, i) => {
    const other = second[i]!
    if (attempt.verdict === 'open' || other.verdict === 'not_applicable') return attempt
    if (other.verdict === 'open') return { ...other, detail: `${other.detail} (${where})` }
    return attempt.verdict === 'not_applicable' ? other : attempt
  })
}
