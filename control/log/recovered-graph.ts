/**
 * Builds a graph from entries of the state file and the journal. Pure.
 *
 * A task that was running when the service ended is pending again, and its interrupted attempt uses up no retry.
 */
import { isTerminal } from '../../shared/contract/task-status.ts'
import { newTraceId } from '../../shared/logs/trace.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { dependenciesStartOf, type Edges, edgesInSteps } from '../rules/edges.ts'
import type { GraphOptions } from '../rules/graph-options.ts'
import { hasChildren } from '../rules/group-rule.ts'
import { findCycle } from '../rules/order.ts'
import { hasPlaceholder } from '../rules/placeholders.ts'
import type { ValidTask } from '../rules/validate.ts'
import { Graph, RELEASED_EDGES, Task } from '../task/graph.ts'
import type { GraphPatches } from '../task/graph-patches.ts'
import { addFanOuts } from './recovered-fan-outs.ts'
import { restoreTask } from './restored-task.ts'
import { type SettledDependency, type StoredTask, type Writable, withStoredWhen } from './stored-task.ts'

/**
 * Builds the graph of `stored`. `refuse` makes the error for entries that contradict each other. `visit` is called with each
 * entry and its task.
 */
export function* recoverGraph(
  ordinal: number,
  stored: readonly StoredTask[],
  refuse: (detail: string) => Error,
  visit: (entry: StoredTask, task: Task) => void = () => {},
): Steps<Graph> {
  yield
  const { entries, children } = withoutChildren(stored)
  const all = yield* withDependencies(entries)
  yield
  // A graph that has ended gets its edges by name, when somebody asks for them.
  const isOver = stored.every(({ status }) => isTerminal(status))
  const edges = isOver && (yield* isOrdered(all)) ? RELEASED_EDGES : yield* edgesOf(all, refuse)
  const { graph_id, trace_id, trace_state, submitted_by, tenant, created_at } = stored[0]!
  const options = optionsOf(entries)
  const identity = {
    id: graph_id ?? crypto.randomUUID(),
    ordinal,
    traceId: trace_id ?? newTraceId(),
    traceState: trace_state,
    submittedBy: submitted_by,
    tenant,
    createdAt: created_at ?? Date.now(),
    ...(options !== undefined && { options }),
  }
  yield
  const graph = new Graph(identity, edges)
  graph.patched = patchesIn(entries)
  const parents: { readonly task: Task; readonly entry: StoredTask }[] = []
  const addTask = (entry: StoredTask, position: number) => {
    const task = recoverTask(graph, position, entry)
    graph.addRecovered(task)
    if (hasChildren(task.options)) parents.push({ task, entry })
    // In journals of earlier versions, a replaced task may lack its end.
    const isDeleted = position >= entries.length || entry.deleted || (entry.replaced && !task.isTerminal)
    if (isDeleted) task.removal = 'deleted'
    else if (entry.replaced) task.removal = 'replaced'
    if (!task.isTerminal && (!task.isDeleted || task.goesOnElsewhere)) graph.live++
    if (position < entries.length) visit(entries[position]!, task)
  }
  yield* inRanges(all.length, (from, to) => {
    for (let i = from; i < to; i++) addTask(all[i]!, i)
  })
  addFanOuts(graph, parents, children, visit)
  if (graph.live === 0) {
    graph.endedAt = endOf(graph) ?? Date.now()
    graph.releaseEdges()
    return graph
  }
  if (graph.hasRules) return graph // all dependents decide again in `Scheduler.resume`
  yield* inRanges(graph.tasks.length, (from, to) => {
    for (let t = from; t < to; t++) {
      const task = graph.tasks[t]!
      if (task.status !== 'success' || task.childOf !== undefined) continue // children are told of when they go on
      for (let i = 0; i < graph.dependentCount(task); i++) graph.missing[graph.dependent(task, i).position]!--
    }
  })
  return graph
}

/** `entries`, and stand-ins for those that they depend on and that have no entry. */
function* withDependencies(entries: readonly StoredTask[]): Steps<readonly StoredTask[]> {
  const noted = yield* notedOutcomes(entries)
  const settled = yield* settledDependencies(entries, noted)
  return [...entries.map((entry) => withNotedOutcome(entry, noted)), ...settled]
}

/** Whether each task comes after its dependencies, as in most graphs. Then they form no cycle. */
function* isOrdered(all: readonly StoredTask[]): Steps<boolean> {
  const before = new Set<string>()
  for (const [i, { id, depends_on }] of all.entries()) {
    for (const dependency of depends_on ?? []) if (!before.has(dependency)) return false
    before.add(id)
    if (isYieldDue(i)) yield
  }
  return true
}

function* edgesOf(all: readonly StoredTask[], refuse: (detail: string) => Error): Steps<Edges> {
  const positions = new Map<string, number>()
  yield* inRanges(all.length, (from, to) => {
    for (let i = from; i < to; i++) positions.set(all[i]!.id, i)
  })
  const edges = yield* edgesInSteps(all, dependenciesStartOf(all), (id) => positions.get(id)!)
  const cycle = yield* findCycle(edges)
  if (cycle !== null) throw refuse(`the dependencies of task ${all[cycle[0]!]!.id} form a cycle`)
  return edges
}

/** The options in the entries of a graph. If an edit of the file removed them, every entry still has the scope. */
function optionsOf(entries: readonly StoredTask[]): GraphOptions | undefined {
  const options = entries.find((entry) => entry.graph !== undefined)?.graph
  return entries.some(({ scope }) => scope === 'graph') ? { ...options, scope: 'graph' } : options
}

/** The newest number of changes among `entries`: a patch may have left an older one behind. */
export const patchesIn = (entries: Iterable<StoredTask>): GraphPatches | undefined => {
  let newest: GraphPatches | undefined
  for (const { patched } of entries)
    if (patched !== undefined && patched.revision > (newest?.revision ?? 0)) newest = patched
  return newest
}

/** End of the last task. Undefined if no entry has a time, as in state files of other programs. */
export function endOf({ tasks }: Graph): number | undefined {
  let last: number | undefined
  for (const { finishedAt, updatedAt } of tasks) {
    const end = finishedAt ?? updatedAt
    if (end !== undefined && (last === undefined || end > last)) last = end
  }
  return last
}

/** Outcomes of removed dependencies, from the entries of their dependents. */
function* notedOutcomes(entries: readonly StoredTask[]): Steps<ReadonlyMap<string, SettledDependency>> {
  const noted = new Map<string, SettledDependency>()
  yield* inRanges(entries.length, (from, to) => {
    for (let i = from; i < to; i++)
      for (const settled of entries[i]!.settled_dependencies ?? []) noted.set(settled.id, settled)
  })
  return noted
}

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
function* settledDependencies(
  entries: readonly StoredTask[],
  noted: ReadonlyMap<string, SettledDependency>,
): Steps<StoredTask[]> {
  const present = new Set<string>()
  yield* inRanges(entries.length, (from, to) => {
    for (let i = from; i < to; i++) present.add(entries[i]!.id)
  })
  const gone = new Map<string, StoredTask>()
  yield* inRanges(entries.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const { depends_on, type } = entries[i]!
      for (const id of depends_on ?? []) {
        if (!present.has(id)) gone.set(id, { id, type, ...outcomeOf(noted.get(id)) } as StoredTask)
      }
    }
  })
  return [...gone.values()]
}

function recoverTask(graph: Graph, position: number, entry: StoredTask): Task {
  keepOneInput(entry)
  const task = new Task(graph, position, withStoredWhen(entry) as ValidTask)
  restoreTask(task, entry)
  task.setRare('hasPlaceholders', (!task.isTerminal && hasPlaceholder(task.input)) || undefined)
  return task
}

interface SplitEntries {
  /** The entries of submitted tasks. */
  readonly entries: readonly StoredTask[]
  /** The entries of children whose parents have an entry, by id. */
  readonly children: ReadonlyMap<string, StoredTask>
}

/** Splits the entries of a graph. Without its parent, a child counts only while its attempt goes on elsewhere. */
function withoutChildren(stored: readonly StoredTask[]): SplitEntries {
  const children = new Map<string, StoredTask>()
  if (stored.every(({ parent }) => parent === undefined)) return { entries: stored, children }
  const parents = new Set(stored.flatMap((entry) => (hasChildren(entry) ? entry.id : [])))
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
function keepOneInput(entry: Writable<StoredTask>): void {
  if (entry.params != null && entry.input != null && Bun.deepEquals(entry.params, entry.input, true))
    entry.input = undefined
}
