/**
 * The entry of a task in the state file: its record, and fields that only a restart needs. Pure.
 *
 * `recovered-graph.ts` builds graphs from such entries.
 */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import { isObject } from '../../shared/text/json.ts'
import type { SkipStanding } from '../graph/conditions.ts'
import type { FanOut, Task } from '../graph/graph.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../graph/graph-options.ts'
import { taskState, wholeRecord } from '../graph/record.ts'
import { storedWhen } from '../graph/when.ts'
import type { TaskStore } from '../store/tasks.ts'
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
  /** The options of the graph. In the state file, only the first entry of each graph has them. */
  readonly graph?: GraphOptions
  readonly interrupted_attempts?: number
  /** Name of the file that holds the result. */
  readonly result_file?: string
  /** Name of the file that holds a large `resolved_input`. */
  readonly input_file?: string
  /** Leading process of the running attempt. */
  readonly process?: ProcessIdentity
  /** The other service has confirmed the attempt (`Handle.isTaken`). */
  readonly handle_taken?: true
  /** `Handle.owner`. Absent in files of earlier versions. */
  readonly handle_owner?: string
  /** `Handle.losses`. Absent in files of earlier versions, and for 0. */
  readonly handle_losses?: number
  /** `Handle.bundles`. */
  readonly handle_bundles?: Readonly<Record<string, string>>
  /** The id belongs to the graph (`GraphOptions`). */
  readonly scope?: 'graph'
  /**
   * The condition was met, and the task has not started. Absent in files of earlier versions; then it is tested again.
   */
  readonly condition_met?: true
  /** When an approval that waits for its answer was asked for, in milliseconds since 1970. */
  readonly asked_at?: number
  /** How a skipped task counts for its dependents (`Task.skipStanding`). */
  readonly skip_standing?: SkipStanding
  /** The list of a task with for_each whose children have not all ended. */
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

export type StoredTask = Omit<TaskRecord, 'depends_on' | 'retry_on'> & {
  readonly depends_on?: string[]
  readonly retry_on?: ErrorCode[]
} & Partial<StoredExtras> & {
    /** In the journal: the record was deleted, but the outcome of the task still decides about its dependents. */
    readonly deleted?: true
  }

/** Whether the id belongs to the service. Otherwise only the graph of the task knows the id. */
export const isKnownToService = ({
  scope,
  replaced,
  parent,
}: Pick<Partial<StoredTask>, 'scope' | 'replaced' | 'parent'>): boolean =>
  scope !== 'graph' && replaced !== true && parent === undefined

/** The entry of `task` in the state file. `isFirst` says whether it is the first entry of its graph. */
export function storedTask(store: Pick<TaskStore, 'hasRecord'>, task: Task, isFirst: boolean): StoredTask {
  const { graph } = task
  const settled: SettledDependency[] = []
  if (!task.isTerminal) {
    for (const dependency of graph.dependenciesOf(task)) {
      if (store.hasRecord(dependency)) continue
      settled.push(settledDependency(dependency))
    }
  }
  const entry: Writable<StoredTask> = task.childOf === undefined ? (wholeRecord(task) as StoredTask) : childRecord(task)
  if (task.fanOut !== undefined && !task.isTerminal) entry.fan_out = storedFanOut(task.fanOut)
  addProgress(entry, task)
  entry.trace_id = graph.traceId
  if (graph.traceState !== undefined) entry.trace_state = graph.traceState
  if (graph.isScoped) entry.scope = 'graph'
  if (isFirst && graph.options !== NO_GRAPH_OPTIONS) entry.graph = graph.options
  if (settled.length > 0) entry.settled_dependencies = settled
  return entry
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A child without what it shares with all children of its parent, which may be large. */
function childRecord(task: Task): StoredTask {
  const { id, type, tool_name, execution_category, retry, graph_id, parent, index, created_at } = wholeRecord(task)
  const { resolvedInput } = task
  return {
    ...{ id, type, ...(tool_name !== undefined && { tool_name }), execution_category, retry, graph_id },
    ...{ parent, index, created_at },
    ...(resolvedInput !== undefined && { resolved_input: resolvedInput }),
    ...taskState(task),
  } as StoredTask
}

const storedFanOut = ({ count, itemsToKeep: items }: FanOut): StoredFanOut =>
  items === undefined ? { count } : { count, items }

const settledDependency = ({ id, status, isTerminal, continuesOnError, skipStanding }: Task): SettledDependency => ({
  id,
  outcome: isTerminal ? status : 'deleted',
  ...(continuesOnError && { continue_on_error: true }),
  ...(skipStanding !== undefined && { skip_standing: skipStanding }),
})

/** Assigns field by field: spread objects took 5 % of the CPU time of a graph of ten tasks. */
function addProgress(entry: Writable<StoredTask>, task: Task): void {
  const { interruptedAttempts, inputFile, process, handle, skipStanding, askedAt } = task
  entry.seq = task.seq
  entry.graph_ordinal = task.graph.ordinal
  if (interruptedAttempts > 0) entry.interrupted_attempts = interruptedAttempts
  if (task.isConditionMet) entry.condition_met = true
  if (askedAt !== undefined) entry.asked_at = askedAt
  if (skipStanding !== undefined) entry.skip_standing = skipStanding
  if (inputFile !== undefined) entry.input_file = inputFile.name
  if (process !== undefined) entry.process = process
  if (handle?.isTaken) entry.handle_taken = true
  if (handle?.owner !== undefined) entry.handle_owner = handle.owner
  if (handle?.losses) entry.handle_losses = handle.losses
  if (handle?.bundles !== undefined) entry.handle_bundles = handle.bundles
}

/** `entry` with its condition in the form that `storedWhen` writes. */
export function withStoredWhen<T extends { readonly when?: unknown }>(entry: T): T {
  if (!isObject(entry.when)) return entry
  const when = storedWhen(entry.when)
  return when === entry.when ? entry : { ...entry, when }
}

/** The constant part of an entry. A state replaces all of the rest, including fields that it lacks. */
export function withoutState(entry: StoredTask): Partial<StoredTask> {
  const { status, run_status, attempt, interrupted_attempts, process, ...handed } = entry
  const { handle_id, handle_taken, handle_owner, handle_losses, handle_bundles, ...rest } = handed
  const { result, result_file, resolved_input, input_file, condition_met, asked_at, child_count, ...more } = rest
  const {
    placed_on,
    error,
    skip_standing,
    runtime,
    progress,
    attempts,
    updated_at,
    started_at,
    finished_at,
    ...identity
  } = more
  return identity
}
