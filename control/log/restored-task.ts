/** Gives a task the state that a restart finds. Pure. */

import { hasChildren } from '../rules/group-rule.ts'
import { ResultFile } from '../rules/result-file.ts'
import { attemptRecord, cancelled, interrupted, MAX_ATTEMPT_RECORDS, withAttempt } from '../task/attempt-record.ts'
import type { Task } from '../task/graph.ts'
import { KEPT_RARE_NAMES } from '../task/task-fields.ts'
import { handleIn, type StoredTask } from './stored-task.ts'

/** Gives `task` the state in `entry`, as far as the end of the service left it true. */
export function restoreTask(task: Task, entry: StoredTask): void {
  if (entry.created_at !== task.graph.createdAt) task.setRare('createdAt', entry.created_at)
  task.updatedAt = entry.updated_at
  task.startedAt = entry.started_at
  task.attemptStartedAt = entry.attempt_started_at
  task.finishedAt = entry.finished_at
  task.seq = entry.seq ?? 0
  task.attempt = entry.attempt ?? 0
  // A null result belongs to a task that ran. A task that never ran has no result.
  if (entry.result_file !== undefined) task.result = new ResultFile(entry.result_file)
  else task.result = entry.result ?? (entry.result === null && entry.run_status !== undefined ? null : undefined)
  restoreRare(task, entry)
  task.status = entry.status
  if (entry.status === 'running') {
    task.status = 'pending'
    if (entry.run_status === 'running' && task.rare.handle === undefined && !hasChildren(task.options)) {
      task.setRare('interrupted_attempts', (task.rare.interrupted_attempts ?? 0) + 1)
      const reason = interrupted('the attempt was interrupted: the service was killed')
      task.setRare('attempts', withAttempt(task.rare.attempts, attemptRecord(task, undefined, reason)))
    }
  } else if (entry.status === 'cancelling') {
    task.status = 'cancelled'
    const failure = { ...cancelled(), ...(task.rare.error !== undefined && { message: task.rare.error }) }
    task.setRare('failure', failure)
    task.setRare('error', failure.message)
    const { attempts } = task.rare
    if (attempts !== undefined) {
      task.setRare('attempts', withAttempt(attempts, attemptRecord(task, task.updatedAt, failure)))
    }
    task.finishedAt = task.updatedAt ?? task.createdAt // a restart must find the same time again
  }
}

function restoreRare(task: Task, entry: StoredTask): void {
  const { interrupted_attempts, input_file, failure, progress, attempts } = entry
  for (const name of KEPT_RARE_NAMES) if (entry[name] != null) task.setRare(name, entry[name])
  if (progress != null) task.setRare('progress', [...progress])
  if (attempts != null) task.setRare('attempts', attempts.slice(-MAX_ATTEMPT_RECORDS))
  if (interrupted_attempts) task.setRare('interrupted_attempts', interrupted_attempts)
  if (input_file !== undefined) task.setRare('input_file', new ResultFile(input_file))
  if (failure !== undefined) task.setRare('failure', failure)
  if (entry.handle_id != null) task.setRare('handle', handleIn(entry))
}
