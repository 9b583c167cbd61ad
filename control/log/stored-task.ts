/**
 * The entry of a task in the state file: its record, and fields that only a restart needs. Pure.
 *
 * A start reads an entry as a `StoredTask`, with times as numbers. `recovered-graph.ts` builds graphs from those.
 */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import type { MemberInput } from '../../shared/contract/submission.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { msOf } from '../../shared/text/iso-time.ts'
import { isObject } from '../../shared/text/json.ts'
import type { SkipStanding } from '../rules/conditions.ts'
import type { Failure } from '../rules/failure.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { storedWhen } from '../rules/when.ts'
import type { FanOut } from '../task/fan-out.ts'
import type { Task } from '../task/graph.ts'
import type { GraphPatches } from '../task/graph-patches.ts'
import { type Handle, NO_RARE_STATE, type RareState } from '../task/rare-state.ts'
import { taskState, wholeRecord } from '../task/record.ts'
import { HIDDEN_RARE_NAMES, type HiddenRareName, type KeptRareName } from '../task/task-fields.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { StoredFanOut } from './journaled-fan-out.ts'

/** Fields of an entry that the record lacks. Entries of older versions have none of these. */
export interface StoredExtras {
  /** Sequence number of the last change of the task. */
  readonly seq: number
  /** Number of the graph in the order of acceptance. Never reused within a data directory. */
  readonly graph_ordinal: number
  readonly trace_id: string
  /** Absent in files of earlier versions. */
  readonly trace_state?: string
  /** Absent in files of earlier versions. */
  readonly submitted_by?: string
  /** Whose graph it is. Absent for the operator's. */
  readonly tenant?: string
  /** The options of the graph. In the state file, only the first entry of each graph has them. */
  readonly graph?: GraphOptions
  /** Changes of the graph since it was accepted. Only the first entry of a graph that was changed has it. */
  readonly patched?: GraphPatches
  readonly interrupted_attempts?: number
  /** Name of the file that holds the result. */
  readonly result_file?: string
  /** Name of the file that holds a large `resolved_input`. */
  readonly input_file?: string
  /** The id belongs to the graph (`GraphOptions`). */
  readonly scope?: 'graph'
  /** The list of a task with for_each, or the one element of a group, whose children have not all ended. */
  readonly fan_out?: StoredFanOut
  /** Outcomes of dependencies whose records were removed. */
  readonly settled_dependencies?: readonly SettledDependency[]
}

/** The outcome of a dependency whose record was removed. Recovery needs it for the tasks that depend on it. */
export interface SettledDependency {
  readonly id: string
  readonly outcome: TaskStatus | 'deleted'
  /** As in the record. */
  readonly continue_on_error?: true
  readonly skip_standing?: SkipStanding
}

export type TaskEntry = Omit<TaskRecord, 'depends_on' | 'retry_on' | 'tasks'> & {
  readonly depends_on?: string[] | undefined
  readonly retry_on?: ErrorCode[]
  readonly tasks?: MemberInput[]
} & Partial<StoredExtras & HandleFields> &
  Pick<RareState, HiddenRareName>

/** In milliseconds since 1970. */
interface StoredTimes {
  readonly created_at?: number | undefined
  readonly updated_at?: number | undefined
  readonly started_at?: number | undefined
  readonly attempt_started_at?: number | undefined
  readonly finished_at?: number | undefined
}

/** What a start finds of a task, in the state file or the journal. */
export type StoredTask = Omit<TaskEntry, keyof StoredTimes | 'runtime'> &
  StoredTimes & {
    /** That of the last attempt. */
    readonly failure?: Failure | undefined
    /** In the journal: the record was deleted, but the outcome of the task still decides about its dependents. */
    readonly deleted?: true
  }

export type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** What `entry` says. Changes `entry` itself: a copy would take longer than everything else. */
export function storedTask(entry: TaskEntry): StoredTask {
  const { created_at, updated_at, started_at, finished_at, runtime } = entry
  const task = entry as unknown as Writable<StoredTask> & { runtime?: unknown }
  task.created_at = msOf(created_at)
  task.updated_at = msOf(updated_at)
  task.started_at = msOf(started_at)
  task.attempt_started_at = msOf(runtime === undefined ? started_at : runtime.started_at)
  task.finished_at = msOf(finished_at)
  if (runtime?.error !== undefined) task.failure = runtime.error
  task.runtime = undefined
  return task
}

/** Whether the id belongs to the service. Otherwise only the graph of the task knows the id. */
export const isKnownToService = ({
  scope,
  replaced,
  parent,
}: Pick<Partial<StoredTask>, 'scope' | 'replaced' | 'parent'>): boolean =>
  scope !== 'graph' && replaced !== true && parent === undefined

/** The entry of `task` in the state file. `isFirst` says whether it is the first entry of its graph. */
export function taskEntry(store: Pick<TaskStore, 'hasRecord'>, task: Task, isFirst: boolean): TaskEntry {
  const { graph } = task
  const settled: SettledDependency[] = []
  if (!task.isTerminal) {
    for (const dependency of graph.dependenciesOf(task)) {
      if (store.hasRecord(dependency)) continue
      settled.push(settledDependency(dependency))
    }
  }
  const entry: Writable<TaskEntry> = task.childOf === undefined ? (wholeRecord(task) as TaskEntry) : childRecord(task)
  if (task.fanOut !== undefined && !task.isTerminal) entry.fan_out = storedFanOut(task.fanOut)
  addProgress(entry, task)
  entry.trace_id = graph.traceId
  if (graph.traceState !== undefined) entry.trace_state = graph.traceState
  if (graph.submittedBy !== undefined) entry.submitted_by = graph.submittedBy
  if (graph.tenant !== undefined) entry.tenant = graph.tenant
  if (graph.isScoped) entry.scope = 'graph'
  if (isFirst && graph.options !== NO_GRAPH_OPTIONS) entry.graph = graph.options
  if (isFirst && graph.patched !== undefined) entry.patched = graph.patched
  if (settled.length > 0) entry.settled_dependencies = settled
  return entry
}

/** A child without what it shares with all children of its parent, which may be large. */
function childRecord(task: Task): TaskEntry {
  const { id, type, tool_name, execution_category, retry, graph_id, parent, index, created_at } = wholeRecord(task)
  const { resolved_input: resolvedInput, retried } = task.rare
  return {
    ...{ id, type, ...(tool_name !== undefined && { tool_name }), execution_category, retry, graph_id },
    ...{ parent, index, created_at },
    ...(resolvedInput !== undefined && { resolved_input: resolvedInput }),
    ...(retried !== undefined && { retried }),
    ...taskState(task),
  } as TaskEntry
}

const storedFanOut = ({ elements: count, itemsToKeep: items }: FanOut<Task>): StoredFanOut =>
  items === undefined ? { count } : { count, items }

const settledDependency = ({ id, status, isTerminal, continuesOnError, rare }: Task): SettledDependency => ({
  id,
  outcome: isTerminal ? status : 'deleted',
  ...(continuesOnError && { continue_on_error: true }),
  ...(rare.skip_standing !== undefined && { skip_standing: rare.skip_standing }),
})

/** Assigns field by field: spread objects took 5 % of the CPU time of a graph of ten tasks. */
function addProgress(entry: Writable<TaskEntry>, task: Task): void {
  const { rare } = task
  entry.seq = task.seq
  entry.graph_ordinal = task.graph.ordinal
  if (rare === NO_RARE_STATE) return
  if (rare.interrupted_attempts) entry.interrupted_attempts = rare.interrupted_attempts
  if (rare.input_file !== undefined) entry.input_file = rare.input_file.name
  keep(HIDDEN_RARE_NAMES, rare, entry)
  if (rare.handle !== undefined) Object.assign(entry, handleFields(rare.handle))
}

export type KeptRare = Pick<RareState, KeptRareName>

/** Copies the fields with these `names` that `rare` has. */
export function keep(names: readonly KeptRareName[], rare: KeptRare, to: object): void {
  for (const name of names) if (rare[name] !== undefined) (to as Record<string, unknown>)[name] = rare[name]
}

/** The handle of the last attempt, as fields of an entry. */
export interface HandleFields {
  readonly handle_id: string
  /** The other service has confirmed the attempt (`Handle.isTaken`). */
  readonly handle_taken?: true
  /** Absent in files of earlier versions. */
  readonly handle_owner?: string
  /** Absent in files of earlier versions, and for 0. */
  readonly handle_losses?: number
  readonly handle_bundles?: Readonly<Record<string, string>>
  readonly placed_on?: string
}

export function handleFields({ id, isTaken, owner, losses, bundles, runtime }: Handle): HandleFields {
  return {
    handle_id: id,
    ...(isTaken && { handle_taken: true }),
    ...(owner !== undefined && { handle_owner: owner }),
    ...(losses && { handle_losses: losses }),
    ...(bundles !== undefined && { handle_bundles: bundles }),
    ...(runtime !== undefined && { placed_on: runtime }),
  }
}

export function handleIn(entry: Partial<HandleFields>): Handle | undefined {
  const { handle_id: id, handle_taken, handle_owner: owner, handle_losses: losses } = entry
  const { handle_bundles: bundles, placed_on: runtime } = entry
  if (id == null) return undefined
  const optional = {
    ...(owner !== undefined && { owner }),
    ...(runtime != null && { runtime }),
    ...(losses != null && { losses }),
    ...(bundles != null && { bundles }),
  }
  return { id, isTaken: handle_taken === true, ...optional }
}

/** `entry` with its condition in the form that `storedWhen` writes. */
export function withStoredWhen<T extends { readonly when?: unknown }>(entry: T): T {
  if (!isObject(entry.when)) return entry
  const when = storedWhen(entry.when)
  return when === entry.when ? entry : { ...entry, when }
}
