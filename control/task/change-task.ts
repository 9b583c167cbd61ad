/** Applies a change to the fields of its task. `TaskStore` does everything else that follows from the change. */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { mayFollow } from '../rules/transitions.ts'
import { attemptRecord, cancelled, interrupted, withAttempt } from './attempt-record.ts'
import { type AttemptChange, type Ending, isInOneGo } from './change.ts'
import type { Task } from './graph.ts'

/** Maximum entries of `progress`. The oldest are dropped. */
export const MAX_PROGRESS_ENTRIES = 100

/** Throws if the status of the task does not allow the change. That is a defect of the service. */
export function changeTask(change: AttemptChange): void {
  const { task, at } = change
  switch (change.kind) {
    case 'condition-met':
      task.setRare('condition_met', true)
      break
    case 'asked':
      task.setRare('asked_at', at)
      break
    case 'attempt-started':
      if (task.status !== 'running') moveTo(task, 'running')
      task.setRare('isBackingOff', undefined)
      task.setRare('failure', undefined)
      if (change.isMissed) {
        task.attempt++
        task.attemptStartedAt = undefined
        break
      }
      task.setRare('condition_met', undefined)
      task.startedAt ??= task.rare.asked_at ?? at
      if (task.rare.handle !== undefined) break // the attempt of an earlier run continues
      task.attempt++
      task.attemptStartedAt = task.rare.asked_at ?? at
      task.setRare('asked_at', undefined)
      break
    case 'fanned-out':
      moveTo(task, 'running')
      task.setRare('condition_met', undefined)
      task.fanOut = change.fanOut
      task.startedAt ??= at
      task.attempt = (task.rare.interrupted_attempts ?? 0) + 1
      task.attemptStartedAt ??= at
      break
    case 'input-resolved':
      task.setRare('resolved_input', change.input)
      task.setRare('input_file', change.file)
      break
    case 'process-started':
      task.setRare('process', change.process)
      break
    case 'handed-over':
      task.setRare('handle', change.handle)
      break
    case 'attempt-failed':
      task.setRare('attempts', withAttempt(task.rare.attempts, attemptRecord(task, at, change.failure, change.output)))
      task.setRare('process', undefined)
      task.setRare('handle', undefined)
      task.setRare('isBackingOff', true)
      task.setRare('failure', change.failure)
      break
    case 'attempt-interrupted':
      moveTo(task, 'pending')
      task.setRare('process', undefined)
      task.setRare('isBackingOff', undefined)
      if (change.goesOn) break
      task.setRare('attempts', withAttempt(task.rare.attempts, attemptRecord(task, at, interrupted(change.reason))))
      task.setRare('handle', undefined)
      task.setRare('interrupted_attempts', (task.rare.interrupted_attempts ?? 0) + 1)
      break
    case 'cancel-requested':
      moveTo(task, 'cancelling')
      if (change.reason !== undefined) task.setRare('error', cancelled(change.reason).message)
      break
    case 'progress': {
      const entries = task.rare.progress ?? []
      const { message, data } = change
      entries.push({
        timestamp: isoTime(at),
        ...(message !== undefined && { message }),
        ...(data !== undefined && { data }),
      })
      if (entries.length > MAX_PROGRESS_ENTRIES) entries.shift()
      task.setRare('progress', entries)
      break
    }
    case 'ended':
      if (isInOneGo(change.ending)) {
        moveTo(task, 'running')
        task.startedAt = at
        task.attempt = 1
        task.attemptStartedAt = at
      }
      end(task, at, change.ending)
  }
}

function moveTo(task: Task, status: TaskStatus): void {
  if (!mayFollow(task.status, status)) throw new Error(`task ${task.id} cannot go from ${task.status} to ${status}`)
  task.status = status
}

function end(task: Task, at: number, ending: Ending): void {
  moveTo(task, ending.status)
  task.setRare('process', undefined)
  task.setRare('input_file', undefined)
  task.setRare('isBackingOff', undefined)
  task.finishedAt = at
  task.fanOut?.release()
  if (task.rare.attempts !== undefined && ending.status !== 'skipped') {
    const failure = ending.status === 'success' ? undefined : ending.failure
    task.setRare('attempts', withAttempt(task.rare.attempts, attemptRecord(task, at, failure, ending.output)))
  }
  if (ending.status === 'success') {
    task.result = ending.result
    task.setRare('reused_from', ending.reusedFrom)
    return
  }
  task.setRare('error', ending.error)
  if (ending.status === 'skipped') {
    task.setRare('skip_standing', ending.standing)
    return
  }
  task.result = ending.result
  task.setRare('failure', ending.failure)
}
