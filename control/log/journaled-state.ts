/**
 * Encodes the newest states of tasks as the payload of a journal frame, and decodes them. Pure.
 *
 * The payload is a JSON array of rows. A row holds the state of one task. If consecutive tasks are in the same state,
 * as when hundreds of no-op tasks end at once, they share a row: then `id` and `seq` are lists. `updated_at` is in
 * milliseconds since 1970, the other times are in milliseconds before it. After the states come the rows of numbered
 * changes (`journaled-change.ts`), and of notes (`notes.ts`).
 *
 * Measured per ended task: 0.55 µs and 115 bytes for text concatenated row by row, 0.23 µs and 82 bytes for a row of
 * one `JSON.stringify` call, 0.08 µs and 25 bytes for a shared row.
 */
import type { RunStatus } from '../../shared/contract/control.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { msOf } from '../../shared/text/iso-time.ts'
import type { Failure } from '../rules/failure.ts'
import { NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from '../task/graph.ts'
import { NO_RARE_STATE, type RareState } from '../task/rare-state.ts'
import { wholeRecord } from '../task/record.ts'
import { KEPT_RARE_NAMES } from '../task/task-fields.ts'
import { childOptions } from '../task/task-options.ts'
import type { NumberedChange } from './event-rows.ts'
import { type ChangeRow, changeRow, isChangeRow, type JournaledChange, journaledChange } from './journaled-change.ts'
import { isNoteRow, type NoteRow } from './notes.ts'
import {
  type HandleFields,
  handleFields,
  type KeptRare,
  keep,
  type StoredTask,
  type TaskEntry,
  type Writable,
} from './stored-task.ts'

/** The state of a task. `continue_on_error` and `record` are only of deleted tasks, whose records are not in the state file. */
export type JournaledState = Pick<StoredTask, 'id' | 'status'> &
  Partial<StoredTask> & {
    readonly seq: number
    readonly graph_ordinal: number
    readonly record?: Partial<StoredTask>
  }

/** Absent values are null or omitted. If the row has a `rest`, the result is there. */
type Row = [
  ...[graphOrdinal: number, id: string | string[], seq: number | number[]],
  ...[status: TaskStatus, runStatus: RunStatus | null, attempt: number, interruptedAttempts: number],
  ...[updatedAt: number | null, sinceStarted: Ms, sinceAttemptStarted: Ms, sinceFinished: Ms],
  ...[result?: unknown, rest?: Rest],
]
type Ms = number | null

/** Length of a row without a result. */
const MIN_ROW_LENGTH = 11

/**
 * The fields of a deleted task that recovery needs to follow its attempt in another service. The state file does not
 * hold deleted tasks. Recovery does not need the dependencies: they have ended.
 */
type HiddenRecord = Partial<Omit<TaskEntry, 'updated_at' | 'started_at' | 'finished_at' | 'runtime'>>

/** Fields that few states have. */
type Rest = KeptRare &
  Partial<HandleFields> & {
    readonly result?: unknown
    readonly result_file?: string
    readonly input_file?: string | undefined
    readonly failure?: Failure | undefined
    readonly child_count?: number | undefined
    readonly continue_on_error?: true | undefined
    readonly record?: HiddenRecord | undefined
    readonly deleted?: true | undefined
  }

/** Consecutive tasks in the same state. For a single task, `ids` and `seqs` are not lists. */
export interface StateGroup {
  /** The first of them. */
  readonly task: Task
  ids: string | string[]
  seqs: number | number[]
}

export function groupsOf(tasks: readonly Task[]): StateGroup[] {
  const groups: StateGroup[] = []
  let last: Task | undefined
  for (const task of tasks) {
    if (last !== undefined && isAlike(last, task)) join(groups.at(-1)!, task)
    else groups.push({ task, ids: task.id, seqs: task.seq })
    last = task
  }
  return groups
}

/** The payload of a frame. */
export function encodeStates(
  groups: readonly StateGroup[],
  changes: readonly NumberedChange[] = [],
  notes: Iterable<NoteRow> = [],
): string {
  const rows: (Row | ChangeRow | NoteRow)[] = groups.map(rowOf)
  for (const change of changes) rows.push(changeRow(change))
  for (const note of notes) rows.push(note) // to spread an empty iterator takes 1.7 µs
  return JSON.stringify(rows)
}

/**
 * Whether two tasks are in the same state. Results are compared by identity: that is cheap, and enough for constants.
 */
const isAlike = (a: Task, b: Task): boolean =>
  a.graph === b.graph &&
  a.status === b.status &&
  a.attempt === b.attempt &&
  a.updatedAt === b.updatedAt &&
  a.startedAt === b.startedAt &&
  a.attemptStartedAt === b.attemptStartedAt &&
  a.finishedAt === b.finishedAt &&
  a.result === b.result &&
  a.type === b.type &&
  a.toolName === b.toolName &&
  a.childOf === b.childOf &&
  a.rare === NO_RARE_STATE &&
  b.rare === NO_RARE_STATE &&
  !hasRest(a) &&
  !hasRest(b)

function join(group: StateGroup, { id, seq }: Task): void {
  if (Array.isArray(group.ids)) group.ids.push(id)
  else group.ids = [group.ids, id]
  if (Array.isArray(group.seqs)) group.seqs.push(seq)
  else group.seqs = [group.seqs, seq]
}

const hasRest = (task: Task): boolean =>
  task.isDeleted || task.result instanceof ResultFile || task.fanOut !== undefined || hasKept(task.rare)

function hasKept(rare: RareState): boolean {
  if (rare === NO_RARE_STATE) return false
  if (rare.failure !== undefined || rare.handle !== undefined) return true
  return KEPT_RARE_NAMES.some((name) => rare[name] !== undefined)
}

function rowOf({ task, ids, seqs }: StateGroup): Row {
  const { result } = task
  const at = task.updatedAt ?? null
  const since = (ms: number | undefined): Ms => (at === null || ms === undefined ? null : at - ms)
  const row: Row = [
    task.graph.ordinal,
    ids,
    seqs,
    task.status,
    task.runStatus ?? null,
    task.attempt,
    task.rare.interrupted_attempts ?? 0,
    at,
    since(task.startedAt),
    since(task.attemptStartedAt),
    since(task.finishedAt),
  ]
  if (hasRest(task)) row.push(null, restOf(task))
  else if (result !== undefined) row.push(result)
  return row
}

function restOf(task: Task): Rest {
  const { result, rare, isDeleted } = task
  const { failure, handle } = rare
  const kept: KeptRare = {}
  keep(KEPT_RARE_NAMES, rare, kept)
  return {
    ...(result instanceof ResultFile ? { result_file: result.name } : { result }),
    ...kept,
    input_file: rare.input_file?.name,
    failure,
    child_count: task.fanOut?.count,
    ...(handle !== undefined && handleFields(handle)),
    record: isDeleted && handle !== undefined && !task.isTerminal ? hiddenRecord(task) : undefined,
    continue_on_error: (isDeleted && task.continuesOnError) || undefined,
    deleted: isDeleted || undefined,
  }
}

function hiddenRecord(task: Task): HiddenRecord {
  const { type, tool_name, params, input, graph_id, created_at, parent, index } = wholeRecord(task)
  const { cache, ...options } = childOptions(task.options) as HiddenRecord
  return {
    ...{ type, graph_id, created_at, trace_id: task.graph.traceId },
    ...options,
    ...(tool_name !== undefined && { tool_name }),
    ...(params !== undefined && { params }),
    ...(input !== undefined && { input }),
    ...(parent !== undefined && { parent, index: index! }),
    ...(task.graph.options !== NO_GRAPH_OPTIONS && { graph: task.graph.options }),
  }
}

/** A decoded payload. */
export interface JournaledChanges {
  readonly states: JournaledState[]
  readonly changes: JournaledChange[]
  readonly notes: readonly NoteRow[]
}

/** Throws if the payload is invalid. */
export const decodeStates = (payload: string): JournaledChanges => decodeRows(JSON.parse(payload))

/** As `decodeStates`, for parsed JSON. */
export function decodeRows(parsed: unknown): JournaledChanges {
  const rows = parsed as readonly (Row | ChangeRow | NoteRow)[]
  return {
    states: rows.flatMap((row) => (isChangeRow(row) || isNoteRow(row) ? [] : statesOf(row))),
    notes: rows.filter(isNoteRow),
    changes: rows.flatMap((row) => (isChangeRow(row) ? journaledChange(row) : [])),
  }
}

function statesOf(row: Row): JournaledState | JournaledState[] {
  const [, ids, seqs] = row
  if (!Array.isArray(ids) || !Array.isArray(seqs)) return stateOf(row, ids as string, seqs as number)
  return ids.map((id, i) => stateOf(row, id, seqs[i]!))
}

function stateOf(row: Row, id: string, seq: number): JournaledState {
  const [graph_ordinal, , , status, run_status, attempt, interrupted_attempts, updatedAt, ...more] = row
  const [sinceStarted, sinceAttemptStarted, sinceFinished, result, rest] = more
  const time = (since: Ms) => (updatedAt === null || since === null ? undefined : updatedAt - since)
  const state: Partial<Writable<JournaledState>> = { id, seq, graph_ordinal, status }
  if (rest !== undefined) {
    const { failure, record, ...kept } = rest
    Object.assign(state, kept)
    if (run_status !== null) state.failure = failure
    if (record !== undefined) state.record = { ...record, created_at: msOf(record.created_at) }
  } else if (row.length > MIN_ROW_LENGTH) state.result = result
  if (run_status !== null) state.run_status = run_status
  if (attempt > 0) state.attempt = attempt
  if (interrupted_attempts > 0) state.interrupted_attempts = interrupted_attempts
  state.updated_at = time(0)
  state.started_at = time(sinceStarted)
  state.attempt_started_at = time(run_status === null ? sinceStarted : sinceAttemptStarted)
  state.finished_at = time(sinceFinished)
  return state as JournaledState
}

/** Numbers of the graphs that a parsed payload has states of. Throws if it is invalid. */
export const graphsInStates = (parsed: unknown): number[] =>
  (parsed as (Row | NoteRow)[]).flatMap(([graphOrdinal]) => graphOrdinal ?? [])
