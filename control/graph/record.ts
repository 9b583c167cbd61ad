/** The record of a task, on the wire and in the state file. Absent values are omitted. Pure. */
import type { RuntimeRecord, TaskRecord } from '../../shared/contract/control.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { pointerValue } from '../json/json-pointer.ts'
import type { Task } from './graph.ts'
import { shownInput } from './hidden-env.ts'
import { ResultFile } from './result-file.ts'

/** The record as callers see it: values of `env` of a runtime task are hidden. Omits a result that is in a file. */
export function taskRecord(task: Task): TaskRecord & { readonly result_file?: string } {
  const params = shownInput(task.type, task.params)
  const input = task.input === task.params ? params : shownInput(task.type, task.input)
  return recordOf(task, { params, input, resolved: shownInput(task.type, task.resolvedInput) })
}

/** The record for the disk, with the values of `env`. Never for the wire. */
export const wholeRecord = (task: Task) =>
  recordOf(task, { params: task.params, input: task.input, resolved: task.resolvedInput })

type Fields = Readonly<Record<string, unknown>>

/** The fields of the record that may hold an `env`, with the values. Never for the wire. */
export const wholeInputs = (task: Task): Fields => ({
  params: task.params,
  input: task.input,
  resolved_input: task.resolvedInput,
})

/**
 * Whether `shown`, a record for callers, hides a value at `pointer` or below. `whole` has the inputs with all values.
 * Parts without hidden values are the same objects in both.
 */
export function hidesAt(shown: Fields, whole: Fields, pointer: string): boolean {
  if (pointer === '') return Object.entries(whole).some(([name, value]) => shown[name] !== value)
  const inWhole = pointerValue(whole, pointer)
  if (!inWhole.found) return false
  const inShown = pointerValue(shown, pointer)
  return inShown.found ? inShown.value !== inWhole.value : inWhole.value !== undefined
}

/**
 * `params`, `input` and `result` are not copied. For a result in a file, `result_file` has the name of the file, for
 * the state file and the journal. On the wire, the result itself is inserted.
 */
function recordOf(
  task: Task,
  { params, input, resolved }: { readonly params: unknown; readonly input: unknown; readonly resolved: unknown },
): TaskRecord & { readonly result_file?: string } {
  const record: Partial<Writable<TaskRecord>> = { id: task.id, type: task.type }
  if (task.toolName !== undefined) record.tool_name = task.toolName
  record.execution_category = task.type
  if (params !== undefined) record.params = params
  if (input !== undefined) record.input = input
  if (resolved !== undefined) record.resolved_input = resolved
  if (task.dependsOn !== undefined) record.depends_on = task.dependsOn
  const { rule, retries } = task
  if (rule?.run_if !== undefined) record.run_if = rule.run_if
  if (rule?.when !== undefined) record.when = rule.when
  if (rule?.continue_on_error !== undefined) record.continue_on_error = rule.continue_on_error
  const { fanOutRule, childOf } = task
  if (fanOutRule !== undefined) Object.assign(record, fanOutRule)
  record.retry = task.retry
  if (retries?.retry_on !== undefined) record.retry_on = retries.retry_on
  if (retries?.backoff !== undefined) record.backoff = retries.backoff
  if (task.cache !== undefined) record.cache = task.cache
  if (task.timeout !== undefined) record.timeout = task.timeout
  if (task.queueTimeout !== undefined) record.queue_timeout = task.queueTimeout
  if (task.secrets !== undefined) record.secrets = task.secrets
  if (task.annotations !== undefined) record.annotations = task.annotations
  record.graph_id = task.graph.id
  if (childOf !== undefined) {
    record.parent = childOf.parent.id
    record.index = childOf.indexOf(task)
  }
  if (task.isReplaced) record.replaced = true
  if (task.reusedFrom !== undefined) record.reused_from = task.reusedFrom
  record.created_at = isoTime(task.createdAt)
  addState(record, task)
  return record as TaskRecord
}

/** The part of a record that changes. */
export type TaskState = Pick<
  TaskRecord,
  | 'status'
  | 'run_status'
  | 'attempt'
  | 'child_count'
  | 'handle_id'
  | 'placed_on'
  | 'result'
  | 'error'
  | 'runtime'
  | 'progress'
  | 'attempts'
  | 'updated_at'
  | 'started_at'
  | 'finished_at'
> & { readonly result_file?: string }

export function taskState(task: Task): TaskState {
  const state: Partial<Writable<TaskState>> = {}
  addState(state, task)
  return state as TaskState
}

/** Adds the fields of `taskState` to `state`. To copy them from another object took a quarter of the time of a record. */
function addState(state: Partial<Writable<TaskState>>, task: Task): void {
  state.status = task.status
  const runStatus = task.runStatus
  if (runStatus !== undefined) state.run_status = runStatus
  if (task.attempt > 0) state.attempt = task.attempt
  if (task.fanOut !== undefined) state.child_count = task.fanOut.count
  if (task.handle !== undefined) state.handle_id = task.handle.id
  if (task.handle?.runtime !== undefined) state.placed_on = task.handle.runtime
  if (task.result instanceof ResultFile) state.result_file = task.result.name
  else if (task.result !== undefined) state.result = task.result
  if (task.errorText !== undefined) state.error = task.errorText
  const runtime = runtimeRecord(task)
  if (runtime !== undefined) state.runtime = runtime
  if (task.progress !== undefined) state.progress = task.progress
  if (task.attempts !== undefined) state.attempts = task.attempts
  state.updated_at = isoTime(task.updatedAt ?? task.createdAt)
  if (task.startedAt !== undefined) state.started_at = isoTime(task.startedAt)
  if (task.finishedAt !== undefined) state.finished_at = isoTime(task.finishedAt)
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

function runtimeRecord(task: Task): RuntimeRecord | undefined {
  const status = task.status === 'cancelling' ? 'cancelling' : task.runStatus
  if (status === undefined) return undefined
  const { attemptStartedAt, finishedAt, failure, handle } = task
  const record: Partial<Writable<RuntimeRecord>> = { status }
  if (handle !== undefined) record.handle_id = handle.id
  record.attempt = task.attempt
  if (attemptStartedAt !== undefined) record.started_at = isoTime(attemptStartedAt)
  if (finishedAt !== undefined) record.finished_at = isoTime(finishedAt)
  if (attemptStartedAt !== undefined && finishedAt !== undefined)
    record.duration_ms = Math.max(0, finishedAt - attemptStartedAt)
  if (failure !== undefined) record.error = failure
  return record as RuntimeRecord
}
