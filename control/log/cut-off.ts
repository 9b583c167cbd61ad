/** Attempts that the end of their service cut off, where they are not to run again. Pure. */

import { isoTime } from '../../shared/text/iso-time.ts'
import type { Failure } from '../rules/failure.ts'
import { withAttempt } from '../task/attempt-record.ts'
import type { StoredTask } from './stored-task.ts'

/** Whether the service carried out an attempt itself when it ended. Attempts in other services go on. */
export const isCutOff = ({ status, run_status, deleted, handle_id, for_each, fan_out }: StoredTask): boolean =>
  status === 'running' &&
  run_status === 'running' &&
  !deleted &&
  handle_id === undefined &&
  for_each == null &&
  fan_out === undefined

/** The entry of a task that failed with its attempt. The last known time is that of its end. */
export function failedEntry(entry: StoredTask, { code, message }: Failure): StoredTask {
  const { process: _, attempts, attempt = 1, updated_at: finished_at, attempt_started_at, ...rest } = entry
  const record = {
    attempt,
    ...(attempt_started_at !== undefined && { started_at: isoTime(attempt_started_at) }),
    ...(finished_at !== undefined && { finished_at: isoTime(finished_at) }),
    error: message,
    code,
  }
  return {
    ...rest,
    ...{ attempt, status: 'failed', run_status: 'failed', error: message },
    ...{ updated_at: finished_at, attempt_started_at, finished_at, failure: { code, message } },
    ...(attempts != null && { attempts: [...withAttempt(attempts, record)] }),
  } as StoredTask
}
