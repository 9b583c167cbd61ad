/** A task as callers see it. Pure. */
import type {
  ErrorInfo,
  EventRecord,
  EventType,
  ExecutionPlan,
  Reservation,
  ResourceUsage,
  TaskStatusResponse,
  TaskSummary,
} from '../../shared/contract/runtime.ts'
import type { TaskInput } from '../../shared/contract/task-inputs.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { TaskDir } from '../files/task-dir.ts'
import type { TaskEvent } from './events.ts'
import type { Output } from './shown-output.ts'
import type { TaskRow } from './tasks.ts'

/** The status of `row` with its output. */
export const statusResponse = (row: TaskRow, dir: TaskDir, { stdout, stderr }: Output): TaskStatusResponse => ({
  ...summaryResponse(row, dir),
  stdout: stdout.text,
  stderr: stderr.text,
  stdout_truncated: stdout.truncated,
  stderr_truncated: stderr.truncated,
})

/** Characters of the inputs of a task in a list, as JSON. A page of lists of thousands of files would be too large. */
export const MAX_LISTED_INPUTS_CHARACTERS = 256 * 1024

/** The status of `row` for a list, without inputs that are many. */
export const listedResponse = (row: TaskRow, dir: TaskDir): TaskSummary =>
  summaryResponse((row.inputs ?? '').length <= MAX_LISTED_INPUTS_CHARACTERS ? row : { ...row, inputs: null }, dir)

/** The status of `row` without its output. */
function summaryResponse(row: TaskRow, dir: TaskDir): TaskSummary {
  const usage = parsed<ResourceUsage>(row.usage)
  return {
    task_id: row.task_id,
    handle_id: row.task_id,
    status: row.status,
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
    ...(row.started_at !== null && { started_at: isoTime(row.started_at) }),
    ...(row.finished_at !== null && { finished_at: isoTime(row.finished_at) }),
    ...(usage !== undefined && { duration_ms: usage.duration_ms }),
    ...(row.launcher_pid !== null && { shim_pid: row.launcher_pid }),
    ...(row.pid !== null && { pid: row.pid }),
    ...(row.pgid !== null && { pgid: row.pgid }),
    ...(row.exit_code !== null && { exit_code: row.exit_code }),
    ...(row.exit_signal !== null && { exit_signal: row.exit_signal }),
    ...(row.error !== null && { error: JSON.parse(row.error) as ErrorInfo }),
    ...(usage !== undefined && { usage }),
    execution_plan: JSON.parse(row.execution_plan) as ExecutionPlan,
    reservation: JSON.parse(row.reservation) as Reservation,
    artifacts: {
      task_dir: dir.task_dir,
      request_path: dir.request_path,
      result_path: dir.result_path,
      stdout_path: dir.stdout_path,
      stderr_path: dir.stderr_path,
      ...(row.is_script === 1 && { script_path: dir.script_path }),
    },
    ...(row.inputs !== null && { inputs: JSON.parse(row.inputs) as Record<string, TaskInput> }),
    metadata: parsed<Record<string, string>>(row.metadata) ?? {},
  }
}

export const eventRecord = (task_id: string, event: TaskEvent): EventRecord => ({
  seq: event.seq,
  task_id,
  event_type: event.event_type as EventType,
  timestamp: isoTime(event.timestamp),
  message: event.message,
  data: event.data,
})

const parsed = <T>(json: string | null): T | undefined => (json === null ? undefined : (JSON.parse(json) as T))
