/** Whether a launcher takes too long: to end its task, or even to start it. Reads a clock, changes nothing. */
import type { Limits } from '../../shared/runtime-request/limits.ts'
import type { RunningTask } from './running-task.ts'

/**
 * Milliseconds after the end of its grace time at which a launcher is taken for one that cannot end its task. Shorter, and
 * a machine under load loses outcomes; a launcher needs as long only when the task has stopped or crippled it.
 */
const OVERDUE_MS = 5_000

/** A task of the profile process can stop its launcher, that of another task too, and the fork server. */
export function isOverdue(running: RunningTask, graceMs: number): boolean {
  const { task, isEnding, isForced, launchedSince, killedSince } = running
  if (isEnding || isForced || launchedSince === undefined) return false
  const { wall_time_ms } = JSON.parse(task.row.limits) as Limits
  const endsAt = Math.min(launchedSince + wall_time_ms, killedSince ?? Number.POSITIVE_INFINITY)
  return performance.now() > endsAt + graceMs + OVERDUE_MS
}
