/**
 * Decides whether a task runs, from the ends of its dependencies. Pure.
 *
 * An ended task has one of four standings for its dependents. A task collects the standings of its dependencies as
 * bits, in any order, and decides after each of them. Only graphs with rules (`run_if`, `when`, `continue_on_error`)
 * need this. In other graphs a task runs once all its dependencies have succeeded, and is skipped when one of them has
 * not.
 */
import type { RunIf } from '../../shared/contract/run-if.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import type { JsonObject } from '../../shared/text/json.ts'

/** The optional rules of a task, as submitted. */
export interface RunRule {
  readonly run_if?: RunIf
  /** As submitted (`when.ts`). */
  readonly when?: Readonly<JsonObject>
  readonly continue_on_error?: boolean
}

/** Whether a task has a rule. */
export const hasRule = ({ run_if, when, continue_on_error }: RunRule): boolean =>
  run_if !== undefined || when !== undefined || continue_on_error !== undefined

/**
 * The standing of an ended task for its dependents.
 *
 * - `good`: it succeeded, or failed with `continue_on_error`.
 * - `neutral`: it was skipped because of its own `run_if` or `when`.
 * - `bad`: it failed, or was skipped because of a bad task.
 * - `cancelled`: it was cancelled, deleted before it ran, or skipped because of such a task.
 */
export type Standing = 'good' | 'neutral' | 'bad' | 'cancelled'

/** The standing of a skipped task. */
export const SKIP_STANDINGS = ['neutral', 'bad', 'cancelled'] as const satisfies readonly Standing[]
export type SkipStanding = (typeof SKIP_STANDINGS)[number]

/** The facts that determine the standing of a task. */
export interface Standable {
  readonly status: TaskStatus
  /** Whether the task was deleted before it ran. */
  readonly neverRuns: boolean
  readonly continuesOnError: boolean
  readonly rare: {
    /** The standing of a skipped task; undefined means `bad`. */
    readonly skip_standing?: SkipStanding | undefined
  }
}

/** Undefined for a task that still runs, or may run. */
export function standingOf({ status, neverRuns, continuesOnError, rare }: Standable): Standing | undefined {
  switch (status) {
    case 'success':
      return 'good'
    case 'failed':
      return continuesOnError ? 'good' : 'bad'
    case 'skipped':
      return rare.skip_standing ?? 'bad'
    case 'cancelled':
      return 'cancelled'
    case 'pending':
      return neverRuns ? 'cancelled' : undefined
    default:
      return undefined
  }
}

/** The bit of each standing in the standings that a task has collected. */
export const STANDING_BITS: Readonly<Record<Standing, number>> = { good: 1, neutral: 2, bad: 4, cancelled: 8 }

/** The decision about a pending task: it waits, it runs, or it is skipped with a standing. */
export type Decision = 'wait' | 'run' | SkipStanding

/** `standings` are those of the ended dependencies, as bits. `haveAllEnded` is true for a task without dependencies. */
export function decide(runIf: RunIf, standings: number, haveAllEnded: boolean): Decision {
  const has = (standing: Standing) => (standings & STANDING_BITS[standing]) !== 0
  if (runIf === 'success') {
    if (has('bad')) return 'bad'
    if (has('cancelled')) return 'cancelled'
    if (!haveAllEnded) return 'wait'
    return has('good') || standings === 0 ? 'run' : 'neutral'
  }
  if (!haveAllEnded) return 'wait'
  if (runIf === 'always' || has('bad')) return 'run'
  return has('cancelled') ? 'cancelled' : 'neutral'
}
