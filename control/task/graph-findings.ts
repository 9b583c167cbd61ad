/**
 * Examines one graph for the answer about it: totals, order of the tasks, edges, critical path, first failure. Pure;
 * linear in tasks and dependencies.
 */
import { MAX_GRAPH_EDGES, MAX_GRAPH_TASKS } from '../../shared/contract/graphs.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { type CriticalPath, criticalPath } from '../rules/critical-path.ts'
import { type Dependent, type Edges, edgesInSteps, fillDependenciesStart } from '../rules/edges.ts'
import type { Members } from '../rules/members.ts'
import { dependencyOrder } from '../rules/order.ts'
import type { FanOut } from './fan-out.ts'
import type { Graph, Task } from './graph.ts'
import { type GraphTotals, graphTotals } from './graph-summary.ts'
import { firstFailure, skippedBy } from './root-cause.ts'

export interface GraphFindings {
  readonly graph: Graph
  /** Its list of tasks, to which the positions belong. A patch may have given it another one since. */
  readonly tasks: readonly Task[]
  readonly totals: GraphTotals
  readonly edges: Edges
  /** The tasks of the answer in topological order. */
  readonly shown: readonly Task[]
  /** Whether the graph has more tasks than the answer. */
  readonly isTruncated: boolean
  readonly criticalPath: CriticalPath
  readonly failure: { readonly task: Task; readonly skipped: number } | undefined
}

/** `now` is in milliseconds since 1970. */
export function* examineGraph(graph: Graph, now: number): Steps<GraphFindings> {
  for (;;) {
    const { tasks } = graph
    const found = yield* examineTasks(graph, now)
    if (graph.tasks === tasks) return found // positions are those of one list
  }
}

function* examineTasks(graph: Graph, now: number): Steps<GraphFindings> {
  const { tasks } = graph
  const { submitted, edges: ofLive } = graph
  const totals = yield* graphTotals(graph, now)
  const edges = ofLive ?? (yield* edgesByName(submitted))
  const order = yield* dependencyOrder(edges)
  const path = yield* pathThroughGroups(graph, edges, order, now)
  const failed = yield* firstFailure(tasks)
  const failure = failed && { task: failed, skipped: yield* skippedBy(failed, edges, tasks) }
  return { graph, tasks, totals, edges, ...(yield* shownOf(tasks, order, edges)), criticalPath: path, failure }
}

/** Milliseconds from the start of a task to its end, or until now; undefined if it never started, or was deleted. */
export function durationOf({ startedAt, finishedAt, isDeleted }: Task, now: number): number | undefined {
  return startedAt === undefined || isDeleted ? undefined : Math.max(0, (finishedAt ?? now) - startedAt)
}

/** As `durationOf`, but undefined for a reused outcome, which took no time in this graph, and for a task of `on_end`. */
const durationHere = (task: Task, now: number): number | undefined =>
  task.rare.reused_from === undefined && task.atEnd === undefined ? durationOf(task, now) : undefined

/**
 * The critical path, with the tasks of a group in its place. Of the elements of a list, that counts which took the longest. A
 * group whose elements wait for each other (`max_parallel`) counts as one task, as do plain tasks with `for_each`.
 */
function* pathThroughGroups({ tasks }: Graph, edges: Edges, order: Uint32Array, now: number): Steps<CriticalPath> {
  const inside = new Map<number, CriticalPath>()
  for (const position of order) {
    const { fanOut } = tasks[position]!
    if (isYieldDue(position)) yield
    if (fanOut?.members === undefined || fanOut.count === 0 || fanOut.maxParallel < fanOut.elements) continue
    inside.set(position, yield* longestElement(fanOut, fanOut.members, now))
  }
  const durationAt = (position: number) => {
    const whole = durationHere(tasks[position]!, now)
    return whole === undefined ? undefined : (inside.get(position)?.durationMs ?? whole)
  }
  const { positions, durationMs } = yield* criticalPath(edges, order, durationAt)
  const through = (position: number) => inside.get(position)?.positions ?? [position]
  return { positions: inside.size === 0 ? positions : positions.flatMap(through), durationMs }
}

function* longestElement(fanOut: FanOut<Task>, { tasks, edges }: Members, now: number): Steps<CriticalPath> {
  const order = Uint32Array.from(tasks.keys())
  let longest: CriticalPath = { positions: [], durationMs: 0 }
  for (let element = 0; element < fanOut.elements; element++) {
    const start = element * fanOut.width
    const path = yield* criticalPath(edges, order, (member) => durationHere(fanOut.child(start + member), now))
    if (path.durationMs > longest.durationMs || longest.positions.length === 0)
      longest = { ...path, positions: path.positions.map((member) => fanOut.first + start + member) }
  }
  return longest
}

/** Builds the edges again. An ended graph has freed them. */
export function* edgesByName(tasks: readonly Task[]): Steps<Edges> {
  const positions = new Map<string, number>()
  const dependents: Dependent[] = []
  const dependenciesStart = new Uint32Array(tasks.length + 1)
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      positions.set(tasks[i]!.id, i)
      dependents.push({ depends_on: tasks[i]!.dependsOn })
    }
    fillDependenciesStart(dependenciesStart, dependents, from, to)
  })
  return yield* edgesInSteps(dependents, dependenciesStart, (id) => positions.get(id)!)
}

/** The first tasks of `order`, with all dependencies of each of them. Each task is followed by its first children. */
function* shownOf(
  tasks: readonly Task[],
  order: Uint32Array,
  { dependenciesStart }: Edges,
): Steps<Pick<GraphFindings, 'shown' | 'isTruncated'>> {
  const shown: Task[] = []
  let edgeCount = 0
  let isTruncated = false
  yield* inRanges(order.length, (from, to) => {
    for (let i = from; i < to && !isTruncated; i++) {
      const position = order[i]!
      const task = tasks[position]!
      if (task.isDeleted) continue
      edgeCount += dependenciesStart[position + 1]! - dependenciesStart[position]!
      isTruncated = shown.length === MAX_GRAPH_TASKS || edgeCount > MAX_GRAPH_EDGES
      if (!isTruncated) shown.push(task)
    }
  })
  if (tasks.length === order.length) return { shown, isTruncated }
  return yield* withChildren(shown, tasks, isTruncated, order.length)
}

/** `shown` with as many children as there is room for, in their order, each behind its parent. `first` is that of all children. */
function* withChildren(
  shown: readonly Task[],
  tasks: readonly Task[],
  isFull: boolean,
  first: number,
): Steps<Pick<GraphFindings, 'shown' | 'isTruncated'>> {
  const byParent = new Map<Task, Task[]>(shown.map((task) => [task, []]))
  let room = MAX_GRAPH_TASKS - shown.length
  let isTruncated = isFull
  yield* inRanges(tasks.length - first, (from, to) => {
    for (const child of tasks.slice(first + from, first + to)) {
      const siblings = child.isDeleted ? undefined : byParent.get(child.childOf!.parent)
      if (siblings === undefined) continue
      if (room === 0) isTruncated = true
      else {
        siblings.push(child)
        room--
      }
    }
  })
  const all: Task[] = []
  for (const task of shown) {
    all.push(task)
    for (const child of byParent.get(task)!) all.push(child)
    if (isYieldDue(all.length)) yield
  }
  return { shown: all, isTruncated }
}
