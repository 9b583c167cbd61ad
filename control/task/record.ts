/** The record of a task, on the wire and in the state file. Absent values are omitted. Pure. */
import type { RuntimeRecord, TaskRecord } from '../../shared/contract/control.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { pointerValue } from '../json/json-pointer.ts'
import { shownInput, shownMembers } from '../rules/hidden-env.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from './graph.ts'
import type { StateName } from './task-fields.ts'
import { NO_OPTIONS } from './task-options.ts'

/** The record as callers see it: values of `env` of a runtime task are hidden. Omits a result that is in a file. */
export function taskRecord(task: Task): TaskRecord & { readonly result_file?: string } {
  const params = shownInput(task.type, task.params)
  const input = task.input === task.params ? params : shownInput(task.type, task.input)
  const record = recordOf(task, { params, input, resolved: shownInput(task.type, task.rare.resolved_input) })
  const { tasks } = task.options
  return tasks === undefined ? record : { ...record, tasks: shownMembers(tasks) as unknown[] }
}

/** The record for the disk, with the values of `env`. Never for the wire. */
export const wholeRecord = (task: Task) =>
  recordOf(task, { params: task.params, input: task.input, resolved: task.rare.resolved_input })

type Fields = Readonly<Record<string, unknown>>

/** The fields of the record that may hold an `env`, with the values. Never for the wire. */
export const wholeInputs = (task: Task): Fields => ({
  params: task.params,
  input: task.input,
  resolved_input: task.rare.resolved_input,
  tasks: task.options.tasks,
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
  if (task.options === NO_OPTIONS) record.retry = 0
  else Object.assign(record, task.options)
  record.graph_id = task.graph.id
  const { childOf, rare } = task
  if (childOf !== undefined) {
    record.parent = childOf.parent.id
    if (childOf.hasList) record.index = childOf.indexOf(task)
  }
  if (task.isReplaced) record.replaced = true
  if (rare.reused_from !== undefined) record.reused_from = rare.reused_from
  if (rare.retried !== undefined) record.retried = rare.retried
  if (rare.added_by !== undefined) record.added_by = rare.added_by
  record.created_at = isoTime(task.createdAt)
  addState(record, task)
  return record as TaskRecord
}

/** The part of a record that changes. */
export type TaskState = Pick<TaskRecord, StateName> & { readonly result_file?: string }

export function taskState(task: Task): TaskState {
  const state: Partial<Writable<TaskState>> = {}
  addState(state, task)
  return state as TaskState
}

/** Adds the fields of `taskState` to `state`. To copy them from another object took a quarter of the time of a record. */
function addState(state: Partial<Writable<TaskState>>, task: Task): void {
  const { rare, runStatus, fanOut, result } = task
  const { handle } = rare
  state.status = task.status
  if (runStatus !== undefined) state.run_status = runStatus
  if (task.attempt > 0) state.attempt = task.attempt
  if (fanOut !== undefined) state.child_count = fanOut.count
  if (handle !== undefined) state.handle_id = handle.id
  if (handle?.runtime !== undefined) state.placed_on = handle.runtime
  if (result instanceof ResultFile) state.result_file = result.name
  else if (result !== undefined) state.result = result
  if (rare.error !== undefined) state.error = rare.error
  const runtime = runtimeRecord(task)
  if (runtime !== undefined) state.runtime = runtime
  if (rare.progress !== undefined) state.progress = rare.progress
  if (rare.attempts !== undefined) state.attempts = rare.attempts
  state.updated_at = isoTime(task.updatedAt ?? task.createdAt)
  if (task.startedAt !== undefined) state.started_at = isoTime(task.startedAt)
  if (task.finishedAt !== undefined) state.finished_at = isoTime(task.finishedAt)
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

function runtimeRecord(task: Task): RuntimeRecord | undefined {
  const status = task.status === 'cancelling' ? 'cancelling' : task.runStatus
  if (status === undefined) return undefined
  const { attemptStartedAt, finishedAt, rare } = task
  const { failure, handle } = rare
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
