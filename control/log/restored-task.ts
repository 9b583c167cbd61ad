/** Gives a task the state that a restart finds. Pure. */
import { isoTime } from '../../shared/text/iso-time.ts'
import { attemptRecord, interrupted, MAX_ATTEMPT_RECORDS, withAttempt } from '../graph/attempt-record.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Task } from '../graph/graph.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { StoredTask } from './stored-task.ts'

/** In milliseconds since 1970. */
interface Times {
  readonly createdAt: number | undefined
  readonly updatedAt: number | undefined
  readonly startedAt: number | undefined
  readonly attemptStartedAt: number | undefined
  readonly finishedAt: number | undefined
}

/** Gives `task` the state in `entry`, as far as the end of the service left it true. `times` are those of the entry. */
export function restoreTask(task: Task, entry: StoredTask, times: Times = timesOf(task, entry)): void {
  const { runtime } = entry
  task.ownCreatedAt = times.createdAt === task.graph.createdAt ? undefined : times.createdAt
  task.updatedAt = times.updatedAt
  task.startedAt = times.startedAt
  task.attemptStartedAt = times.attemptStartedAt
  task.finishedAt = times.finishedAt
  task.seq = entry.seq ?? 0
  task.attempt = entry.attempt ?? 0
  task.interruptedAttempts = entry.interrupted_attempts ?? 0
  // A null result belongs to a task that ran. A task that never ran has no result.
  if (entry.result_file !== undefined) task.result = new ResultFile(entry.result_file)
  else task.result = entry.result ?? (entry.result === null && entry.run_status !== undefined ? null : undefined)
  task.resolvedInput = entry.resolved_input ?? undefined
  task.inputFile = entry.input_file === undefined ? undefined : new ResultFile(entry.input_file)
  task.errorText = entry.error ?? undefined
  task.isConditionMet = entry.condition_met === true
  task.askedAt = entry.asked_at ?? undefined
  task.skipStanding = entry.skip_standing
  task.failure = runtime?.error
  task.progress = entry.progress == null ? undefined : [...entry.progress]
  task.reusedFrom = entry.reused_from ?? undefined
  task.attempts = entry.attempts == null ? undefined : entry.attempts.slice(-MAX_ATTEMPT_RECORDS)
  task.handle = handleIn(entry)
  task.status = entry.status
  if (entry.status === 'running') {
    task.status = 'pending'
    if (entry.run_status === 'running' && task.handle === undefined && task.fanOutRule === undefined) {
      task.interruptedAttempts++
      const reason = interrupted('the attempt was interrupted: the service was killed')
      task.attempts = withAttempt(task.attempts, attemptRecord(task, undefined, reason))
    }
  } else if (entry.status === 'cancelling') {
    task.status = 'cancelled'
    task.failure = { code: 'cancelled', message: 'task cancelled' }
    task.errorText = task.failure.message
    if (task.attempts !== undefined) {
      task.attempts = withAttempt(task.attempts, attemptRecord(task, task.updatedAt, task.failure))
    }
    task.finishedAt = task.updatedAt ?? task.createdAt // a restart must find the same time again
  }
}

/** To parse a time takes longer than to compare two; most tasks have two or three different ones. */
function timesOf({ graph }: Task, { created_at, updated_at, started_at, finished_at, runtime }: StoredTask): Times {
  const updatedAt = timeOf(updated_at)
  const startedAt = timeOf(started_at)
  return {
    createdAt: created_at === isoTime(graph.createdAt) ? graph.createdAt : timeOf(created_at),
    updatedAt,
    startedAt,
    attemptStartedAt:
      runtime === undefined || runtime.started_at === started_at ? startedAt : timeOf(runtime.started_at),
    finishedAt: finished_at === updated_at ? updatedAt : timeOf(finished_at),
  }
}

function handleIn(entry: StoredTask): Handle | undefined {
  const { handle_id: id, handle_taken, handle_owner: owner, handle_bundles: bundles, placed_on } = entry
  const { handle_losses: losses } = entry
  if (id == null) return undefined
  const runtime = placed_on ?? undefined
  const optional = {
    ...(owner !== undefined && { owner }),
    ...(runtime !== undefined && { runtime }),
    ...(losses != null && { losses }),
    ...(bundles != null && { bundles }),
  }
  return { id, isTaken: handle_taken === true, ...optional }
}

export const timeOf = (text: string | undefined): number | undefined => {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? undefined : ms
}
