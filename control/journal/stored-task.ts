/**
 * The entry of a task in the state file: its record, and fields that only a restart needs. Pure.
 *
 * `recoverGraph` builds a graph from such entries. A task that was running when the service ended is pending again, and
 * its interrupted attempt uses up no retry.
 */
import type { ErrorCode, TaskRecord } from '../../shared/contract/control.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { isObject } from '../../shared/json.ts'
import type { ProcessIdentity } from '../../shared/processes.ts'
import { runSync } from '../../shared/steps.ts'
import { newTraceId } from '../../shared/trace.ts'
import type { SkipStanding } from '../graph/conditions.ts'
import { dependenciesStartOf, edgesAtOnce } from '../graph/edges.ts'
import { Graph, Task } from '../graph/graph.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../graph/graph-options.ts'
import { findCycle } from '../graph/order.ts'
import { hasPlaceholder } from '../graph/placeholders.ts'
import { taskState, wholeRecord } from '../graph/record.ts'
import type { ValidTask } from '../graph/validate.ts'
import { storedWhen } from '../graph/when.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { StoredFanOut } from './journaled-expansion.ts'
import { addFanOuts } from './recovered-fan-outs.ts'
import { restoreTask, timeOf } from './restored-task.ts'

/** Fields of an entry that the record lacks. Entries of older versions have none of these. */
export interface StoredExtras {
  /** Sequence number of the last change of the task. */
  readonly seq: number
  /** Number of the graph in the order of acceptance. Never reused within a data directory. */
  readonly graph_ordinal: number
  readonly trace_id: string
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
  /** Of a task whose children have not all ended: what it runs for. */
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
export function storedTask(store: TaskStore, task: Task, isFirst: boolean): StoredTask {
  const { graph } = task
  const settled: SettledDependency[] = []
  if (!task.isTerminal) {
    for (const dependency of graph.dependenciesOf(task)) {
      if (store.hasRecord(dependency)) continue
      settled.push(settledDependency(dependency))
    }
  }
  return {
    ...(task.childOf === undefined ? (wholeRecord(task) as StoredTask) : childRecord(task)),
    ...fanOutExtras(task),
    ...progressExtras(task),
    trace_id: graph.traceId,
    ...(graph.isScoped && { scope: 'graph' as const }),
    ...(isFirst && graph.options !== NO_GRAPH_OPTIONS && { graph: graph.options }),
    ...(settled.length > 0 && { settled_dependencies: settled }),
  }
}

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

function fanOutExtras({ expansion, isTerminal }: Task): Pick<StoredExtras, 'fan_out'> {
  if (expansion === undefined || isTerminal) return {}
  const { count, itemsToKeep: items } = expansion
  return { fan_out: { count, ...(items !== undefined && { items }) } }
}

const settledDependency = ({ id, status, isTerminal, continuesOnError, skipStanding }: Task): SettledDependency => ({
  id,
  outcome: isTerminal ? status : 'deleted',
  ...(continuesOnError && { continue_on_error: true }),
  ...(skipStanding !== undefined && { skip_standing: skipStanding }),
})

const progressExtras = ({
  seq,
  graph,
  interruptedAttempts,
  inputFile,
  process,
  handle,
  skipStanding,
  isConditionMet,
  askedAt,
}: Task) => ({
  seq,
  graph_ordinal: graph.ordinal,
  ...(interruptedAttempts > 0 && { interrupted_attempts: interruptedAttempts }),
  ...(isConditionMet && { condition_met: true as const }),
  ...(askedAt !== undefined && { asked_at: askedAt }),
  ...(skipStanding !== undefined && { skip_standing: skipStanding }),
  ...(inputFile !== undefined && { input_file: inputFile.name }),
  ...(process !== undefined && { process }),
  ...(handle?.isTaken && { handle_taken: true as const }),
  ...(handle?.owner !== undefined && { handle_owner: handle.owner }),
})

/**
 * Builds the graph of `stored`. `refuse` makes the error for entries that contradict each other. `visit` is called with each
 * entry and its task.
 */
export function recoverGraph(
  ordinal: number,
  stored: readonly StoredTask[],
  refuse: (detail: string) => Error,
  visit: (entry: StoredTask, task: Task) => void = () => {},
): Graph {
  const { entries, children } = withoutChildren(stored)
  const noted = notedOutcomes(entries)
  const all = [...entries.map((entry) => withNotedOutcome(entry, noted)), ...settledDependencies(entries, noted)]
  const positions = new Map(all.map((entry, position) => [entry.id, position]))
  const edges = edgesAtOnce(all, dependenciesStartOf(all), (id) => positions.get(id))!
  const cycle = runSync(findCycle(edges))
  if (cycle !== null) throw refuse(`the dependencies of task ${all[cycle[0]!]!.id} form a cycle`)

  const { graph_id, trace_id, created_at } = stored[0]!
  const options = optionsOf(entries)
  const identity = {
    id: graph_id ?? crypto.randomUUID(),
    ordinal,
    traceId: trace_id ?? newTraceId(),
    createdAt: timeOf(created_at) ?? Date.now(),
    ...(options !== undefined && { options }),
  }
  const graph = new Graph(identity, edges)
  const parents: { readonly task: Task; readonly entry: StoredTask }[] = []
  all.forEach((entry, position) => {
    const task = recoverTask(graph, position, entry)
    graph.addRecovered(task)
    if (task.fanOut !== undefined) parents.push({ task, entry })
    // In journals of earlier versions, a replaced task may lack its end.
    const isDeleted = position >= entries.length || entry.deleted || (entry.replaced && !task.isTerminal)
    if (isDeleted) task.removal = 'deleted'
    else if (entry.replaced) task.removal = 'replaced'
    if (!task.isTerminal && (!task.isDeleted || task.goesOnElsewhere)) graph.live++
    if (position < entries.length) visit(entries[position]!, task)
  })
  addFanOuts(graph, parents, children, visit)
  if (graph.live === 0) {
    graph.endedAt = endOf(graph) ?? Date.now()
    graph.releaseEdges()
    return graph
  }
  if (graph.hasRules) return graph // all dependents decide again in `Scheduler.resume`
  for (const task of graph.tasks) {
    if (task.status !== 'success') continue
    for (let i = 0; i < graph.dependentCount(task); i++) graph.missing[graph.dependent(task, i).position]!--
  }
  return graph
}

/** The options in the entries of a graph. If an edit of the file removed them, every entry still has the scope. */
function optionsOf(entries: readonly StoredTask[]): GraphOptions | undefined {
  const options = entries.find((entry) => entry.graph !== undefined)?.graph
  return entries.some(({ scope }) => scope === 'graph') ? { ...options, scope: 'graph' } : options
}

/** End of the last task. Undefined if no entry has a time, as in state files of other programs. */
function endOf({ tasks }: Graph): number | undefined {
  const times = tasks.flatMap(({ finishedAt, updatedAt }) => finishedAt ?? updatedAt ?? [])
  return times.length === 0 ? undefined : times.reduce((last, time) => Math.max(last, time))
}

/** Outcomes of removed dependencies, from the entries of their dependents. */
const notedOutcomes = (entries: readonly StoredTask[]): ReadonlyMap<string, SettledDependency> =>
  new Map(entries.flatMap((entry) => entry.settled_dependencies ?? []).map((settled) => [settled.id, settled]))

/** A deleted task without a state in the journal gets the outcome that the entries of its dependents hold. */
const withNotedOutcome = (entry: StoredTask, noted: ReadonlyMap<string, SettledDependency>): StoredTask =>
  entry.deleted && entry.seq === undefined ? { ...entry, ...outcomeOf(noted.get(entry.id)) } : entry

/** A dependency without a noted outcome counts as deleted, so it stays pending for ever. */
function outcomeOf({ outcome = 'deleted', continue_on_error, skip_standing }: Partial<SettledDependency> = {}) {
  return {
    status: outcome === 'deleted' ? ('pending' as const) : outcome,
    ...(continue_on_error && { continue_on_error }),
    ...(skip_standing !== undefined && { skip_standing }),
  }
}

/** Stand-in entries for dependencies that have no entry. */
function settledDependencies(
  entries: readonly StoredTask[],
  noted: ReadonlyMap<string, SettledDependency>,
): StoredTask[] {
  const present = new Set(entries.map((entry) => entry.id))
  const gone = new Map<string, StoredTask>()
  for (const { depends_on, type } of entries) {
    for (const id of depends_on ?? []) {
      if (!present.has(id)) gone.set(id, { id, type, ...outcomeOf(noted.get(id)) } as StoredTask)
    }
  }
  return [...gone.values()]
}

function recoverTask(graph: Graph, position: number, entry: StoredTask): Task {
  const task = new Task(graph, position, withStoredWhen(withOneInput(entry)) as ValidTask)
  restoreTask(task, entry)
  task.hasPlaceholders = !task.isTerminal && hasPlaceholder(task.input)
  return task
}

interface SplitEntries {
  /** Those of submitted tasks. */
  readonly entries: readonly StoredTask[]
  /** Those of children whose parents have one, by id. */
  readonly children: ReadonlyMap<string, StoredTask>
}

/** Splits the entries of a graph. Without its parent, a child counts only while its attempt goes on elsewhere. */
function withoutChildren(stored: readonly StoredTask[]): SplitEntries {
  const children = new Map<string, StoredTask>()
  if (stored.every(({ parent }) => parent === undefined)) return { entries: stored, children }
  const parents = new Set(stored.flatMap(({ id, for_each }) => (for_each == null ? [] : id)))
  const entries = stored.filter((entry) => {
    if (entry.parent === undefined) return true
    if (!parents.has(entry.parent)) return entry.handle_id !== undefined
    children.set(entry.id, entry)
    return false
  })
  const orphaned = (entry: StoredTask) => entry.parent !== undefined
  return { entries: entries.map((entry) => (orphaned(entry) ? { ...entry, deleted: true } : entry)), children }
}

/** Drops `input` if it equals `params`. A record has its parameters under both names; one object saves memory. */
function withOneInput(entry: StoredTask): StoredTask {
  const { params, input, ...rest } = entry
  if (params == null || input == null || !Bun.deepEquals(params, input, true)) return entry
  return { ...rest, params } as StoredTask
}

/** `entry` with its condition in the form that `storedWhen` writes. */
export function withStoredWhen<T extends { readonly when?: unknown }>(entry: T): T {
  if (!isObject(entry.when)) return entry
  const when = storedWhen(entry.when)
  return when === entry.when ? entry : { ...entry, when }
}
