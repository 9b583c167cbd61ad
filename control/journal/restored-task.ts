/** Gives a task the state that a restart finds. Pure. */
import { attemptRecord, interrupted, MAX_ATTEMPT_RECORDS, withAttempt } from '../graph/attempt-record.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Task } from '../graph/graph.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { StoredTask } from './stored-task.ts'

/** Gives `task` the state in `entry`, as far as the end of the service left it true. */
export function restoreTask(task: Task, entry: StoredTask): void {
  const { runtime } = entry
  const createdAt = timeOf(entry.created_at)
  task.ownCreatedAt = createdAt === task.graph.createdAt ? undefined : createdAt
  task.updatedAt = timeOf(entry.updated_at)
  task.startedAt = timeOf(entry.started_at)
  task.attemptStartedAt = timeOf(runtime?.started_at) ?? task.startedAt
  task.finishedAt = timeOf(entry.finished_at)
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
    if (entry.run_status === 'running' && task.handle === undefined && task.fanOut === undefined) {
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

function handleIn({ handle_id: id, handle_taken, handle_owner: owner, placed_on }: StoredTask): Handle | undefined {
  if (id == null) return undefined
  const runtime = placed_on ?? undefined
  const optional = { ...(owner !== undefined && { owner }), ...(runtime !== undefined && { runtime }) }
  return { id, isTaken: handle_taken === true, ...optional }
}

export const timeOf = (text: string | undefined): number | undefined => {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? undefined : ms
}
