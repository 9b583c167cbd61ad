/**
 * Builds a graph from entries of the state file and the journal. Pure.
 *
 * A task that was running when the service ended is pending again, and its interrupted attempt uses up no retry.
 */
import { runSync } from '../../shared/steps.ts'
import { newTraceId } from '../../shared/trace.ts'
import { dependenciesStartOf, edgesAtOnce } from '../graph/edges.ts'
import { Graph, Task } from '../graph/graph.ts'
import type { GraphOptions } from '../graph/graph-options.ts'
import { findCycle } from '../graph/order.ts'
import { hasPlaceholder } from '../graph/placeholders.ts'
import type { ValidTask } from '../graph/validate.ts'
import { addFanOuts } from './recovered-fan-outs.ts'
import { restoreTask, timeOf } from './restored-task.ts'
import { type SettledDependency, type StoredTask, withStoredWhen } from './stored-task.ts'

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
