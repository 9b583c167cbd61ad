/** How a task ended, from what its launcher wrote down, or from what we know without that. */

import type { Limits } from '../../shared/runtime-request/limits.ts'
import { type Asked, classify } from '../launcher/classification.ts'
import type { LaunchedProcess, Outcome } from '../launcher/outcome.ts'
import type { Ending, StartedProcess } from './ending.ts'
import type { RunningTask } from './running-task.ts'

type NamedProcess = Pick<LaunchedProcess, 'launcher_pid' | 'pid' | 'pgid' | 'started_ms'>

export const startedProcess = ({ launcher_pid, pid, pgid, started_ms }: NamedProcess): StartedProcess => ({
  launcherPid: launcher_pid,
  pid,
  pgid,
  startedAt: started_ms,
})

export function endingOf(outcome: Outcome, asked: Asked): Ending {
  const { status, error, exit_code, exit_signal, usage } = classify(outcome, asked)
  const hasStarted = outcome.ending.how !== 'launch_failed' && outcome.ending.how !== 'sandbox_setup_failed'
  return {
    status,
    error,
    exitCode: exit_code,
    exitSignal: exit_signal,
    usage,
    started: hasStarted && outcome.process !== undefined ? startedProcess(outcome.process) : undefined,
    isTimeout: outcome.reason === 'wall_time',
    finishedAt: outcome.finished_ms,
  }
}

export const launchFailed = (message: string, details?: object): Ending => ({
  status: 'failed',
  error: { code: 'launch_failed', message, ...(details !== undefined && { details }) },
  finishedAt: Date.now(),
})

/** What is known of a task without its outcome. */
type Known = Pick<RunningTask, 'isAdopted' | 'isForced' | 'launchedSince' | 'startedSince'> & {
  readonly task: Pick<RunningTask['task'], 'row'>
}

/**
 * Neither a launcher nor an outcome. What it was to be ended for is known all the same, if it was: of a task of an earlier
 * service only where we have ended it.
 */
export function lost(known: Known, exitCode?: number): Ending {
  const { row } = known.task
  if (known.isAdopted && !known.isForced) return internal(known, 'task lost during runtime restart')
  const how = exitCode === undefined ? '' : ` with ${exitCode}`
  const message = `task lost: its launcher ended${how} and wrote no outcome (see launchers.log in the data directory)`
  const ending = internal(known, message)
  if (row.kill_requested_at !== null) {
    return { ...ending, status: 'cancelled', error: { code: 'cancelled', message: 'task was cancelled' } }
  }
  const { wall_time_ms } = JSON.parse(row.limits) as Limits
  if (ranMs(known) > wall_time_ms) {
    return { ...ending, error: { code: 'timeout', message: 'task exceeded wall_time_ms' }, isTimeout: true }
  }
  return ending
}

/** Milliseconds that it ran under our eyes, by a clock that nobody sets. */
const ranMs = ({ isAdopted, launchedSince, startedSince }: Known): number =>
  performance.now() - (startedSince ?? (isAdopted ? launchedSince : undefined) ?? Number.POSITIVE_INFINITY)

/** The end of a task of which nobody can say how it ended. */
export function internal(known: Known, message: string): Ending {
  const now = Date.now()
  const { started_at } = known.task.row
  // Of one that an earlier service saw start there is only the clock on the wall, which may have been set back.
  const durationMs =
    known.startedSince === undefined ? now - (started_at ?? now) : performance.now() - known.startedSince
  return {
    status: 'failed',
    error: { code: 'internal', message },
    ...(started_at !== null && { usage: { duration_ms: Math.max(0, Math.round(durationMs)) } }),
    finishedAt: now,
  }
}
