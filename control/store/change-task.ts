/** Applies a change to the fields of its task. `TaskStore` does everything else that follows from the change. */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { attemptRecord, interrupted, withAttempt } from '../graph/attempt-record.ts'
import type { Task } from '../graph/graph.ts'
import { mayFollow } from '../graph/transitions.ts'
import type { AttemptChange, Ending } from './change.ts'

/** Maximum entries of `progress`. The oldest are dropped. */
export const MAX_PROGRESS_ENTRIES = 100

/** Throws if the status of the task does not allow the change. That is a defect of the service. */
export function changeTask(change: AttemptChange): void {
  const { task, at } = change
  switch (change.kind) {
    case 'condition-met':
      task.isConditionMet = true
      break
    case 'approval-asked':
      task.askedAt = at
      break
    case 'attempt-started':
      if (task.status !== 'running') moveTo(task, 'running')
      task.isBackingOff = false
      task.failure = undefined
      if (change.isMissed) {
        task.attempt++
        task.attemptStartedAt = undefined
        break
      }
      task.isConditionMet = false
      task.startedAt ??= task.askedAt ?? at
      if (task.handle !== undefined) break // the attempt of an earlier run continues
      task.attempt++
      task.attemptStartedAt = task.askedAt ?? at
      task.askedAt = undefined
      break
    case 'fanned-out':
      moveTo(task, 'running')
      task.isConditionMet = false
      task.fanOut = change.fanOut
      task.startedAt ??= at
      task.attempt = 1
      task.attemptStartedAt ??= at
      break
    case 'input-resolved':
      task.resolvedInput = change.input
      task.inputFile = change.file
      break
    case 'process-started':
      task.process = change.process
      break
    case 'handed-over':
      task.handle = change.handle
      break
    case 'attempt-failed':
      task.attempts = withAttempt(task.attempts, attemptRecord(task, at, change.failure, change.output))
      task.process = undefined
      task.handle = undefined
      task.isBackingOff = true
      task.failure = change.failure
      break
    case 'attempt-interrupted':
      moveTo(task, 'pending')
      task.process = undefined
      task.isBackingOff = false
      if (change.goesOn) break
      task.attempts = withAttempt(task.attempts, attemptRecord(task, at, interrupted(change.reason)))
      task.handle = undefined
      task.interruptedAttempts++
      break
    case 'cancel-requested':
      moveTo(task, 'cancelling')
      break
    case 'progress': {
      task.progress ??= []
      const { message, data } = change
      task.progress.push({
        timestamp: new Date(at).toISOString(),
        ...(message !== undefined && { message }),
        ...(data !== undefined && { data }),
      })
      if (task.progress.length > MAX_PROGRESS_ENTRIES) task.progress.shift()
      break
    }
    case 'ended':
      end(task, at, change.ending)
  }
}

function moveTo(task: Task, status: TaskStatus): void {
  if (!mayFollow(task.status, status)) throw new Error(`task ${task.id} cannot go from ${task.status} to ${status}`)
  task.status = status
}

function end(task: Task, at: number, ending: Ending): void {
  moveTo(task, ending.status)
  task.process = undefined
  task.inputFile = undefined
  task.isBackingOff = false
  task.finishedAt = at
  task.fanOut?.release()
  if (task.attempts !== undefined && ending.status !== 'skipped') {
    const failure = ending.status === 'success' ? undefined : ending.failure
    task.attempts = withAttempt(task.attempts, attemptRecord(task, at, failure, ending.output))
  }
  if (ending.status === 'success') {
    task.result = ending.result
    task.reusedFrom = ending.reusedFrom
    return
  }
  task.errorText = ending.error
  if (ending.status === 'skipped') {
    task.skipStanding = ending.standing
    return
  }
  task.result = ending.result
  task.failure = ending.failure
}
