/**
 * Encodes events as rows of the history, and decodes them. Pure.
 *
 * A row holds one event. If consecutive tasks of a graph are in the same state, one row holds an event for each of
 * them: then `ids` and `seqs` are lists. Rows have all fields of their events, so they can be decoded after the graph
 * was removed. They do not hold results. `at` is in milliseconds since 1970. The times of start and end are in
 * milliseconds before `at`.
 */
import type { ProgressEntry, ReusedFrom, RunStatus } from '../../shared/contract/control.ts'
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import {
  type EventData,
  MAX_EVENT_ERROR_CHARACTERS,
  MAX_PATCHED_SHOWN,
  MAX_RETRIED_SHOWN,
  type ServiceEvent,
  type TaskEventState,
} from '../../shared/contract/events.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { runSync } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Pause } from '../rules/pause.ts'
import type { Change } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import { type GraphTotals, graphTotals } from '../task/graph-summary.ts'
import type { KeptKey } from './idempotency.ts'

/** The outcome of a graph. Later deletions of tasks do not change it. */
export type GraphOutcome = Pick<GraphTotals, 'state' | 'counts'>

export function outcomeOf(graph: Graph): GraphOutcome {
  const { state, counts } = runSync(graphTotals(graph))
  return { state, counts }
}

/** The rest of the event of a retry. */
export type RetriedDetail = Pick<EventData<'tasks_retried'>, 'retried' | 'tasks' | 'by'>

export const retriedDetail = ({ tasks, named, by }: Extract<Change, { kind: 'tasks-retried' }>): RetriedDetail => ({
  retried: Array.from([...named].slice(0, MAX_RETRIED_SHOWN), ({ id }) => id),
  tasks: tasks.length,
  ...(by !== undefined && { by }),
})

/** The rest of the event of a patch. */
export type PatchDetail = Pick<
  EventData<'graph_changed'>,
  'revision' | 'added' | 'removed' | 'replaced' | 'truncated' | 'by' | 'task_id'
>

type PatchIds = Pick<PatchDetail, 'added' | 'removed' | 'replaced'>

export const patchDetail = ({
  patched,
  added,
  removed,
  replaced,
  by,
  task_id,
}: Pick<Extract<Change, { kind: 'graph-patched' }>, 'patched' | 'replaced' | 'by' | 'task_id'> & {
  readonly added: readonly { readonly id: string }[]
  readonly removed: readonly { readonly id: string }[]
}): PatchDetail => {
  const others = new Set(replaced)
  const idsOf = (tasks: readonly { readonly id: string }[]) => tasks.flatMap(({ id }) => (others.has(id) ? [] : id))
  return {
    revision: patched.revision,
    ...shortLists({ added: idsOf(added), removed: idsOf(removed), replaced: [...replaced] }),
    ...(by !== undefined && { by }),
    ...(task_id !== undefined && { task_id }),
  }
}

/** The first ids of each list. */
export function shortLists({ added, removed, replaced }: PatchIds): PatchIds & Pick<PatchDetail, 'truncated'> {
  const isLong = Math.max(added.length, removed.length, replaced.length) > MAX_PATCHED_SHOWN
  const firstOf = (ids: readonly string[]) => ids.slice(0, MAX_PATCHED_SHOWN)
  return {
    ...{ added: firstOf(added), removed: firstOf(removed), replaced: firstOf(replaced) },
    ...(isLong && { truncated: true as const }),
  }
}

/** A change with a sequence number of its own. The other changes have the number of their task (`Task.seq`). */
export type NumberedChange =
  | {
      readonly kind: 'ended'
      readonly graph: Graph
      readonly seq: number
      readonly at: number
      readonly outcome: GraphOutcome
    }
  | {
      readonly kind: 'accepted' | 'removed'
      readonly graph: Graph
      readonly seq: number
      readonly at: number
    }
  | { readonly kind: 'paused'; readonly graph: Graph; readonly seq: number; readonly at: number; readonly pause: Pause }
  /** `by` is the name of a token. */
  | { readonly kind: 'resumed'; readonly graph: Graph; readonly seq: number; readonly at: number; readonly by?: string }
  /** A caller has retried tasks. Their states follow as changes of theirs. */
  | {
      readonly kind: 'retried'
      readonly graph: Graph
      readonly seq: number
      readonly at: number
      readonly retried: RetriedDetail
      readonly idempotency?: KeptKey | undefined
    }
  /** A caller has changed which tasks a live graph has. */
  | {
      readonly kind: 'patched'
      readonly graph: Graph
      readonly seq: number
      readonly at: number
      readonly patch: PatchDetail
    }
  /** The record was deleted. */
  | {
      readonly kind: 'deleted'
      readonly task: Pick<Task, 'id' | 'graph'>
      readonly seq: number
      readonly at: number
    }
  /** The start of the service changed the state, because the attempt was interrupted. */
  | {
      readonly kind: 'recovered'
      readonly task: Task
      readonly seq: number
      readonly at: number
      /** The task may have changed again before its event is made. */
      readonly moment: TaskMoment
    }
  /** A rerun reused the outcome of an earlier task. */
  | {
      readonly kind: 'reused'
      readonly task: Task
      readonly seq: number
      readonly at: number
    }

/** Absent values are null or omitted. */
type TaskRow = readonly [
  ...[kind: 'task', graphId: string, ids: string | string[], seqs: number | number[], at: number],
  ...[type: string, toolName: string | null, status: TaskStatus, runStatus: RunStatus | null, attempt: number],
  ...[sinceStarted: number | null, sinceFinished: number | null, more?: MoreOfTask],
]
interface MoreOfTask {
  readonly error?: string | undefined
  readonly code?: ErrorCode | undefined
  readonly progress?: ProgressEntry | undefined
  readonly reused_from?: ReusedFrom | undefined
  readonly scope?: 'graph' | undefined
  readonly tenant?: string | undefined
  readonly parent?: string | undefined
  readonly child_count?: number | undefined
}
type OtherRow = readonly [
  ...[kind: Exclude<NumberedChange['kind'], 'recovered' | 'reused'>, graphId: string, seq: number, at: number],
  payload: object,
]
export type EventRow = TaskRow | OtherRow

/** The state of a task at one moment, taken from its record or from the journal. */
export interface TaskMoment {
  readonly at: number
  readonly status: TaskStatus
  readonly runStatus: RunStatus | undefined
  readonly attempt: number
  readonly startedAt: number | undefined
  readonly finishedAt: number | undefined
  readonly error: string | undefined
  readonly code: ErrorCode | undefined
  readonly progress: ProgressEntry | undefined
  readonly reusedFrom: ReusedFrom | undefined
  readonly childCount: number | undefined
}

/** Tasks in the same state. For a single task, `ids` and `seqs` are not lists. */
interface TaskGroup {
  readonly task: Task
  readonly ids: string | string[]
  readonly seqs: number | number[]
}

/** The rows of changed tasks and of numbered changes, unordered. Deleted tasks have no rows. */
export function eventRows(groups: readonly TaskGroup[], changes: readonly NumberedChange[]): EventRow[] {
  const rows: EventRow[] = []
  for (const { task, ids, seqs } of groups) {
    if (!task.isDeleted) rows.push(taskRow(task, momentOf(task, task.updatedAt ?? task.createdAt), seqs, ids))
  }
  for (const change of changes) rows.push(rowOfChange(change))
  return rows
}

/** The present state of `task`, as of the time `at`. */
export const momentOf = (task: Task, at: number): TaskMoment => ({
  at,
  status: task.status,
  runStatus: task.runStatus,
  attempt: task.attempt,
  startedAt: task.startedAt,
  finishedAt: task.finishedAt,
  error: task.rare.error ?? task.rare.failure?.message,
  code: task.runStatus === undefined ? undefined : task.rare.failure?.code, // as in the record
  progress: task.rare.progress?.at(-1),
  reusedFrom: task.rare.reused_from,
  childCount: task.fanOut?.count,
})

/** The row of `task` at one moment, which may be in the past. */
export function taskRow(
  task: Task,
  moment: TaskMoment,
  seqs: number | number[],
  ids: string | string[] = task.id,
): TaskRow {
  const { graph, type, toolName } = task
  const { at, startedAt, finishedAt, code, progress, reusedFrom: reused_from } = moment
  const error = moment.error?.slice(0, MAX_EVENT_ERROR_CHARACTERS)
  const scope = graph.isScoped ? ('graph' as const) : undefined
  const { tenant } = graph
  const parent = task.childOf?.parent.id
  const child_count = moment.childCount
  const hasState = error !== undefined || code !== undefined || progress !== undefined || child_count !== undefined
  const hasMore = hasState || reused_from !== undefined || scope !== undefined || parent !== undefined
  const sinceStarted = startedAt === undefined ? null : at - startedAt
  const sinceFinished = finishedAt === undefined ? null : at - finishedAt
  const { status, runStatus = null, attempt } = moment
  const { id: graphId } = graph
  const tool = toolName ?? null
  return hasMore
    ? [
        'task',
        graphId,
        ids,
        seqs,
        at,
        type,
        tool,
        status,
        runStatus,
        attempt,
        sinceStarted,
        sinceFinished,
        { error, code, progress, reused_from, scope, tenant, parent, child_count },
      ]
    : ['task', graphId, ids, seqs, at, type, tool, status, runStatus, attempt, sinceStarted, sinceFinished]
}

export function rowOfChange(change: NumberedChange): EventRow {
  const { kind, seq, at } = change
  if (kind === 'recovered') return taskRow(change.task, change.moment, seq)
  if (kind === 'reused') return taskRow(change.task, momentOf(change.task, at), seq)
  const { id, tenant } = 'graph' in change ? change.graph : change.task.graph
  return [kind, id, seq, at, { tenant, ...payloadOf(change) }]
}

function payloadOf(change: Exclude<NumberedChange, { readonly kind: 'recovered' | 'reused' }>): object {
  switch (change.kind) {
    case 'deleted':
      return { task_id: change.task.id }
    case 'removed':
      return {}
    case 'accepted': {
      const { options, isScoped, submittedCount } = change.graph
      const { name, labels } = options
      return { name, labels, scope: isScoped ? 'graph' : undefined, task_count: submittedCount }
    }
    case 'paused': {
      const { by, why } = change.pause
      return { name: change.graph.options.name, by, why }
    }
    case 'resumed':
      return { name: change.graph.options.name, by: change.by }
    case 'retried':
      return { name: change.graph.options.name, ...change.retried }
    case 'patched':
      return { name: change.graph.options.name, ...change.patch }
    case 'ended':
      return { name: change.graph.options.name, ...change.outcome }
  }
}

/** The newest state of `task` as the fields of an event. */
export function taskEventState(task: Task): TaskEventState {
  const row = taskRow(task, momentOf(task, task.updatedAt ?? task.createdAt), task.seq)
  return stateOf(row, task.id)
}

/** Whether a row may have events of the graph `graphId`. */
export const isOfGraph = ([, of]: EventRow, graphId: string): boolean => of === graphId

/** The lowest and the highest number in `rows`, and the number of events. */
export function rangeOf(rows: readonly EventRow[]): { first: number; last: number; count: number } {
  let first = Number.POSITIVE_INFINITY
  let last = 0
  let count = 0
  const add = (seq: number) => {
    if (seq < first) first = seq
    if (seq > last) last = seq
    count++
  }
  for (const row of rows) {
    const seqs = row[0] === 'task' ? row[3] : row[2]
    if (typeof seqs === 'number') add(seqs)
    else for (const seq of seqs) add(seq)
  }
  return { first, last, count }
}

/** The events of `rows` in the order of their numbers. */
export function eventsOf(rows: readonly EventRow[]): ServiceEvent[] {
  const events: ServiceEvent[] = []
  for (const row of rows) {
    if (row[0] !== 'task') events.push(otherEvent(row))
    else if (typeof row[2] === 'string') events.push(taskEvent(row, row[2], row[3] as number))
    else {
      const seqs = row[3] as number[]
      row[2].forEach((id, i) => {
        events.push(taskEvent(row, id, seqs[i]!))
      })
    }
  }
  return events.sort((a, b) => a.seq - b.seq)
}

const EVENT_NAMES = {
  accepted: 'graph_accepted',
  paused: 'graph_paused',
  resumed: 'graph_resumed',
  ended: 'graph_ended',
  removed: 'graph_removed',
  retried: 'tasks_retried',
  patched: 'graph_changed',
  deleted: 'task_deleted',
} as const

const otherEvent = ([kind, graph_id, seq, at, payload]: OtherRow): ServiceEvent =>
  ({ event: EVENT_NAMES[kind], seq, at: isoTime(at), graph_id, ...payload }) as ServiceEvent

const taskEvent = (row: TaskRow, taskId: string, seq: number): ServiceEvent => ({
  ...({ event: 'task_changed', seq, at: isoTime(row[4]), graph_id: row[1] } as const),
  ...stateOf(row, taskId),
})

function stateOf(row: TaskRow, task_id: string): TaskEventState {
  const [, , , , at, type, toolName, status, runStatus, attempt, sinceStarted, sinceFinished, more] = row
  return {
    ...{ task_id, type },
    ...(toolName !== null && { tool_name: toolName }),
    status,
    ...(runStatus !== null && { run_status: runStatus }),
    ...(attempt > 0 && { attempt }),
    ...(sinceStarted !== null && { started_at: isoTime(at - sinceStarted) }),
    ...(sinceFinished !== null && { finished_at: isoTime(at - sinceFinished) }),
    ...(sinceStarted !== null && sinceFinished !== null && { duration_ms: Math.max(0, sinceStarted - sinceFinished) }),
    ...(more as Partial<TaskEventState>),
  }
}
