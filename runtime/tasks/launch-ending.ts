/** Determines how a task ended, from the outcome of its launcher or from other facts. */
import { type Asked, classify } from '../launch/classification.ts'
import type { Outcome } from '../launch/outcome.ts'
import type { LiveTask } from '../store/live-task.ts'
import { type Ending, startedProcess } from './ending.ts'
import type { Launch } from './launch.ts'

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
    isOver: outcome.leftovers_alive === 0,
    output: { stdout: outcome.stdout_bytes ?? null, stderr: outcome.stderr_bytes ?? null },
    finishedAt: outcome.finished_ms,
  }
}

export const launchFailed = (message: string, details?: object): Ending => ({
  status: 'failed',
  error: { code: 'launch_failed', message, ...(details !== undefined && { details }) },
  finishedAt: Date.now(),
})

/** The known facts about a task without an outcome. */
export interface Unfinished {
  readonly task: Pick<LiveTask, 'row' | 'limits'>
  readonly launch: Launch
}

/**
 * The end of a task that has neither a launcher nor an outcome. If we were ending it, we know why. Of a launch of an
 * earlier service we know that only if we forced the end.
 */
export function lost({ task, launch }: Unfinished, exitCode?: number): Ending {
  if (launch.isAdopted && !launch.isForced) {
    return internal({ task, launch }, 'task lost during runtime restart')
  }
  const how = exitCode === undefined ? '' : ` with ${exitCode}`
  const message = `task lost: its launcher ended${how} and wrote no outcome (see launchers.log in the data directory)`
  const ending = internal({ task, launch }, message)
  if (task.row.kill_requested_at !== null) {
    return { ...ending, status: 'cancelled', error: { code: 'cancelled', message: 'task was cancelled' } }
  }
  if (ranMs(launch) > task.limits.wall_time_ms) {
    return { ...ending, error: { code: 'timeout', message: 'task exceeded wall_time_ms' }, isTimeout: true }
  }
  return ending
}

/** Milliseconds that the task ran while this service watched. 0 where nothing was heard of its start. */
function ranMs({ startedMs, isAdopted, launchedMs }: Launch): number {
  const watchedSince = startedMs ?? (isAdopted ? launchedMs : undefined)
  return watchedSince === undefined ? 0 : performance.now() - watchedSince
}

/** The end of a task of which nothing says how it ended. */
export function internal({ task: { row }, launch: { startedMs } }: Unfinished, message: string): Ending {
  const now = Date.now()
  // If an earlier service saw the start there is only the wall clock, which may have been set back.
  const durationMs = startedMs === undefined ? now - (row.started_at ?? now) : performance.now() - startedMs
  return {
    status: 'failed',
    error: { code: 'internal', message },
    ...(row.started_at !== null && { usage: { duration_ms: Math.max(0, Math.round(durationMs)) } }),
    finishedAt: now,
  }
}
