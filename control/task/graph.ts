/**
 * A graph and its tasks in memory.
 *
 * Dependencies never leave a graph, so the graph is the unit of ownership. `Graph`, `Task` and `FanOut` refer to each
 * other and share this file. The graph holds the edges, by positions of tasks, while at least one of its tasks is live.
 * Once a graph is accepted, only `TaskStore.apply` changes its tasks.
 *
 * There may be a million tasks. So times are numbers (milliseconds since 1970), absent values are undefined, and fields
 * that few tasks use are in separate objects (`task-options.ts`, `rare-state.ts`).
 */

import type { RunStatus } from '../../shared/contract/control.ts'
import type { RunIf } from '../../shared/contract/run-if.ts'
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { SecretNames } from '../../shared/request/secrets.ts'
import { childId } from '../rules/child-ids.ts'
import { hasRule } from '../rules/conditions.ts'
import { dependencyCounts, type Edges } from '../rules/edges.ts'
import { isReferenceToList } from '../rules/fan-out-rule.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { memberId } from '../rules/group-rule.ts'
import { Members } from '../rules/members.ts'
import { normalizeTool, type ToolRef } from '../rules/normalize.ts'
import { hasPlaceholder, type Places } from '../rules/placeholders.ts'
import type { ValidGraph, ValidTask } from '../rules/validate.ts'
import { NO_RARE_STATE, type RareState } from './rare-state.ts'
import { childOptions, type TaskOptions, taskOptions } from './task-options.ts'

const NO_POSITIONS = new Uint32Array(0)
const NO_STANDINGS = new Uint8Array(0)
/** The edges of a graph that has ended: nobody asks for them. */
export const RELEASED_EDGES: Edges = {
  dependenciesStart: new Uint32Array(1),
  dependencies: NO_POSITIONS,
  dependentsStart: NO_POSITIONS,
  dependents: NO_POSITIONS,
}

export interface GraphIdentity {
  readonly id: string
  readonly ordinal: number
  readonly traceId: string
  readonly traceState?: string | undefined
  readonly createdAt: number
  readonly options?: GraphOptions
}

export interface TypeCount {
  readonly type: string
  count: number
}

export class Graph {
  readonly id: string
  /** Number of the graph in the order in which its data directory accepted them. */
  readonly ordinal: number
  readonly traceId: string
  /** The `tracestate` of the request with a `traceparent`, which its tasks hand on. Undefined for most graphs. */
  readonly traceState: string | undefined
  /** Milliseconds since 1970. Set again when the graph is written to disk: lists are in the order of these times. */
  createdAt: number
  /** The submitted fields beside the tasks. */
  readonly options: GraphOptions
  /** The tasks that were submitted, then the children of tasks with `for_each` and of groups. */
  readonly tasks: Task[] = []
  /** The fan-outs of its tasks, in the order of their children. Undefined for most graphs. */
  fanOuts: FanOut[] | undefined = undefined
  /** Number of tasks of each type. There are few types; a map would cost more than the rest of a small graph. */
  readonly typeCounts: TypeCount[] = []
  #edges: Edges
  /**
   * For each task the number of dependencies that have not succeeded yet; in a graph with rules, that have not ended
   * yet. The scheduler decrements them.
   */
  missing: Uint32Array
  /** For each task of a graph with rules, the standings of dependencies that have ended (`STANDING_BITS`). */
  standings: Uint8Array = NO_STANDINGS
  /** Whether a task has a rule (`run_if`, `when`, `continue_on_error`). Other graphs need no `standings`. */
  hasRules = false
  /** The graphs that hold the places of its group, while it waits for one. Nothing of it starts meanwhile. */
  waitsFor: ReadonlySet<{ readonly id: string }> | undefined = undefined
  /** Number of tasks that have not ended. */
  live = 0
  /** End of the last task, in milliseconds since 1970; undefined while a task is live. */
  endedAt: number | undefined = undefined
  /** Whether retention or a caller removed the graph. Callers no longer see it. */
  isRetired = false
  /** Number of tasks that are not deleted. */
  visible = 0
  /** Bytes of the results and resolved inputs of its tasks (`stored-bytes.ts`). */
  storedBytes = 0
  /** Sequence number of the change that accepted the graph; 0 for a recovered graph. */
  acceptedSeq = 0
  /** Whether callers see the graph. False while the graph is being submitted. */
  isAccepted = false
  /** The pack on disk that has the graph, 0 if there is none, and the bytes that it takes there (`log/packs.ts`). */
  pack = 0
  packBytes = 0

  constructor(
    { id, ordinal, traceId, traceState, createdAt, options = NO_GRAPH_OPTIONS }: GraphIdentity,
    edges: Edges,
  ) {
    this.id = id
    this.ordinal = ordinal
    this.traceId = traceId
    this.traceState = traceState
    this.createdAt = createdAt
    this.options = options
    this.#edges = edges
    this.missing = dependencyCounts(edges)
  }

  /** Whether ids of tasks belong to the graph: callers find the tasks only within the graph. */
  get isScoped(): boolean {
    return this.options.scope === 'graph'
  }

  /** Appends tasks to a new graph: `inputs` from `from` to `to`. */
  add(inputs: readonly ValidTask[], from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const task = new Task(this, i, inputs[i]!)
      this.tasks.push(task)
      this.#count(task)
    }
    this.live += to - from
  }

  /** Number of the tasks that were submitted. */
  get submittedCount(): number {
    return this.fanOuts?.[0]?.first ?? this.tasks.length
  }

  /** The tasks that were submitted. Without children the list itself, not a copy. */
  get submitted(): readonly Task[] {
    return this.fanOuts === undefined ? this.tasks : this.tasks.slice(0, this.submittedCount)
  }

  /** Appends the children of a task. */
  addChildren(fanOut: FanOut, children: readonly Task[]): void {
    this.fanOuts ??= []
    this.fanOuts.push(fanOut)
    fanOut.first = this.tasks.length
    for (const child of children) child.position = this.tasks.push(child) - 1
    const { members } = fanOut
    if (members === undefined) return
    const width = members.tasks.length
    const counts = dependencyCounts(members.edges)
    this.missing = withRoom(this.missing, this.tasks.length)
    if (this.hasRules) this.standings = withRoom(this.standings, this.tasks.length)
    for (let i = 0; i < fanOut.count; i++) this.missing[fanOut.first + i] = counts[i % width]!
  }

  /** Appends the next task of a graph that was accepted before. */
  addRecovered(task: Task): void {
    this.tasks.push(task)
    if (bringsRule(task.options) || task.rare.skip_standing !== undefined) this.#ensureStandings()
  }

  #ensureStandings(): void {
    if (this.hasRules) return
    this.hasRules = true
    this.standings = new Uint8Array(this.missing.length)
  }

  #count(task: Task): void {
    if (bringsRule(task.options)) this.#ensureStandings()
    for (const known of this.typeCounts) {
      if (known.type !== task.type) continue
      known.count++
      return
    }
    this.typeCounts.push({ type: task.type, count: 1 })
  }

  /**
   * Submitted tasks without unfinished dependencies. In a graph without edges and children the list itself, not a copy.
   */
  roots(): readonly Task[] {
    if (this.#edges.dependencies.length === 0) return this.submitted
    return this.submitted.filter(({ position }) => this.missing[position] === 0)
  }

  /** Number of dependents of `task`. A dependent that names `task` twice counts twice. 0 once the graph has ended. */
  dependentCount(task: Task): number {
    const { childOf, position } = task
    return childOf === undefined ? lengthAt(this.#edges.dependentsStart, position) : childOf.dependentCount(task)
  }

  /** The `i`-th dependent of `task`. Most tasks have too few dependents to be worth a list. */
  dependent(task: Task, i: number): Task {
    const { childOf, position } = task
    if (childOf !== undefined) return childOf.dependent(task, i)
    const { dependents, dependentsStart } = this.#edges
    return this.tasks[dependents[dependentsStart[position]! + i]!]!
  }

  /** Number of dependencies of `task`, repeated ones counted. 0 once the graph has ended. */
  dependencyCount(task: Task): number {
    const { childOf, position } = task
    return childOf === undefined ? lengthAt(this.#edges.dependenciesStart, position) : childOf.dependencyCount(task)
  }

  /** The `i`-th dependency of `task`. */
  dependency(task: Task, i: number): Task {
    const { childOf, position } = task
    if (childOf !== undefined) return childOf.dependency(task, i)
    const { dependencies, dependenciesStart } = this.#edges
    return this.tasks[dependencies[dependenciesStart[position]! + i]!]!
  }

  /** Dependencies of `task`. Empty once the graph has ended. */
  dependenciesOf(task: Task): Task[] {
    return Array.from({ length: this.dependencyCount(task) }, (_, i) => this.dependency(task, i))
  }

  /** The edges; undefined once the graph has ended. */
  get edges(): Edges | undefined {
    return this.#edges === RELEASED_EDGES ? undefined : this.#edges
  }

  /** Frees the edges, which only a live graph needs. */
  releaseEdges(): void {
    this.#edges = RELEASED_EDGES
    this.missing = NO_POSITIONS
    this.standings = NO_STANDINGS
  }
}

/** Whether the task, or a member of the group that it is, has a rule. */
const bringsRule = (options: TaskOptions): boolean =>
  hasRule(options) || options.tasks?.some((member) => hasRule(taskOptions(member))) === true

/** The length of the list of edges at `position`; 0 if there is none. */
const lengthAt = (start: Uint32Array, position: number): number =>
  Math.max(0, (start[position + 1] ?? 0) - (start[position] ?? 0))

/** `numbers` with room for `length` of them. Groups may start one by one, so there is room for as many again. */
function withRoom<N extends Uint32Array | Uint8Array>(numbers: N, length: number): N {
  if (numbers.length >= length) return numbers
  const more = new (numbers.constructor as new (length: number) => N)(Math.max(length, 2 * numbers.length))
  more.set(numbers)
  return more
}

/** Builds a graph and its tasks from a valid submission. */
export function* createGraph({ tasks, edges }: ValidGraph, identity: GraphIdentity): Steps<Graph> {
  const graph = new Graph(identity, edges)
  yield* inRanges(tasks.length, (from, to) => graph.add(tasks, from, to))
  return graph
}

/** New tasks for the children of a task. `Graph.addChildren` gives them their positions. */
export const newChildren = (fanOut: FanOut): Steps<Task[]> =>
  fanOut.members === undefined ? newCopies(fanOut) : newMembers(fanOut, fanOut.members)

/** Children that share the definition of their parent. */
function* newCopies(fanOut: FanOut): Steps<Task[]> {
  const { parent, count } = fanOut
  const { graph, id, type, toolName, params, rare } = parent
  const options = childOptions(parent.options)
  const input = parent.input === params ? undefined : parent.input
  const children: Task[] = []
  for (let i = 0; i < count; i++) {
    const definition = { id: childId(id, i), type, tool_name: toolName ?? null, params, input }
    const child = new Task(graph, i, definition, options, fanOut)
    child.setRare('hasPlaceholders', rare.hasPlaceholders)
    children.push(child)
    if (isYieldDue(i)) yield
  }
  return children
}

/** The members of a group, for each of its elements. */
function* newMembers(fanOut: FanOut, { tasks }: Members): Steps<Task[]> {
  const { parent, elements } = fanOut
  const { graph, id } = parent
  const options = tasks.map((member) => taskOptions(member))
  const havePlaceholders = tasks.map(({ input, params }) => hasPlaceholder(input ?? params) || undefined)
  const children: Task[] = []
  for (let element = 0; element < elements; element++) {
    const idOf = (local: string) => memberId(id, fanOut.hasList ? element : undefined, local)
    for (let m = 0; m < tasks.length; m++) {
      const { depends_on, ...member } = tasks[m]!
      const definition = { ...member, id: idOf(member.id), depends_on: depends_on?.map(idOf) ?? null }
      const child = new Task(graph, children.length, definition, options[m]!, fanOut)
      child.setRare('hasPlaceholders', havePlaceholders[m])
      children.push(child)
      if (isYieldDue(children.length)) yield
    }
  }
  return children
}

/** A task: its definition, its place in the graph, and its state. Times are milliseconds since 1970. */
export class Task {
  readonly graph: Graph
  /** Index in the list of its graph. Set once, but for a child that no graph has yet. */
  position: number
  readonly id: string
  readonly #tool: ToolRef
  readonly params: unknown
  /** The input of the executor: `input` if given, else `params`. */
  readonly input: unknown
  readonly dependsOn: readonly string[] | undefined
  readonly options: TaskOptions
  /** Its children, or those that it is one of. Undefined for most tasks. */
  #fanOut: FanOut | undefined

  status: TaskStatus = 'pending'
  /** The number of the last attempt; 0 before the first. */
  attempt = 0
  /**
   * Why callers no longer find the task under its id. A deleted task stays in memory while other tasks of its graph
   * need its outcome. A replaced task has ended, and another graph has taken its id.
   */
  removal: 'replaced' | 'deleted' | undefined = undefined

  /** Undefined until the first change after the graph was accepted. */
  updatedAt: number | undefined = undefined
  startedAt: number | undefined = undefined
  attemptStartedAt: number | undefined = undefined
  finishedAt: number | undefined = undefined
  result: unknown = undefined
  /** Sequence number of the last change of the task; 0 before the first one after acceptance. */
  seq = 0
  /**
   * Whether the newest state is not in the journal yet. Only for `UnwrittenChanges`: a set of tasks would cost more.
   */
  isUnwritten = false
  /** Only for the queue of ready tasks, for the same reason. */
  place = 0
  /** Few tasks have any of these fields. `setRare` changes them. */
  rare: Readonly<RareState> = NO_RARE_STATE

  /** `options` and `childOf` of a child; the options of any other task are among the fields of `input`. */
  constructor(
    graph: Graph,
    position: number,
    input: ValidTask,
    options: TaskOptions = taskOptions(input),
    childOf?: FanOut,
  ) {
    this.graph = graph
    this.position = position
    this.id = input.id
    this.#tool = normalizeTool(input.type, input.tool_name ?? undefined)
    this.params = input.params ?? undefined
    this.input = input.input ?? this.params
    this.dependsOn = input.depends_on ?? undefined
    this.options = options
    this.#fanOut = childOf
  }

  setRare<N extends keyof RareState>(name: N, value: RareState[N]): void {
    if (value === this.rare[name]) return
    if (this.rare === NO_RARE_STATE) this.rare = {}
    const rare: RareState = this.rare
    rare[name] = value
  }

  /** The name of the task in answers to callers: its id, or `graph_id/task_id` if only its graph knows the id. */
  get address(): string {
    return this.graph.isScoped || this.isReplaced || this.childOf !== undefined
      ? `${this.graph.id}/${this.id}`
      : this.id
  }

  get type(): string {
    return this.#tool.type
  }

  get toolName(): string | undefined {
    return this.#tool.toolName
  }

  /** Its children, once its list is known. */
  get fanOut(): FanOut | undefined {
    return this.#fanOut?.parent === this ? this.#fanOut : undefined
  }

  set fanOut(fanOut: FanOut | undefined) {
    this.#fanOut = fanOut
  }

  /** What the task is a child of; undefined for a task that was submitted. */
  get childOf(): FanOut | undefined {
    return this.#fanOut?.parent === this ? undefined : this.#fanOut
  }

  /** Milliseconds per attempt, as submitted. Undefined, 0 and negative values mean no timeout. */
  get timeout(): number | undefined {
    return this.options.timeout
  }

  get annotations(): Readonly<Record<string, string>> | undefined {
    return this.options.annotations
  }

  /** Names of the secrets that it gets; never values. */
  get secrets(): SecretNames | undefined {
    return this.options.secrets
  }

  /** Of the ready tasks, those with the highest one start first. */
  get priority(): number {
    return this.options.priority ?? this.childOf?.parent.options.priority ?? this.graph.options.priority ?? 0
  }

  get runIf(): RunIf {
    return this.options.run_if ?? 'success'
  }

  /** Whether a failure counts as a success for dependents and for the graph. */
  get continuesOnError(): boolean {
    return this.options.continue_on_error === true
  }

  get createdAt(): number {
    return this.rare.createdAt ?? this.graph.createdAt
  }

  /** Whether the record was deleted. */
  get isDeleted(): boolean {
    return this.removal === 'deleted'
  }

  /** Whether another task has taken the id. Callers find this task only within its graph. */
  get isReplaced(): boolean {
    return this.removal === 'replaced'
  }

  /**
   * Whether an attempt from an earlier run of control continues in another service. The task follows that attempt
   * instead of starting another.
   */
  get goesOnElsewhere(): boolean {
    return this.status === 'pending' && this.rare.handle !== undefined
  }

  /** Whether the record was deleted before the task ran. */
  get neverRuns(): boolean {
    return this.status === 'pending' && this.isDeleted && this.rare.handle === undefined
  }

  get isTerminal(): boolean {
    return isTerminal(this.status)
  }

  /** Attempts that count against `retry`. */
  get usedAttempts(): number {
    return this.attempt - (this.rare.interrupted_attempts ?? 0)
  }

  /** Undefined until the first attempt, which may end before it starts. A skipped task has none. */
  get runStatus(): RunStatus | undefined {
    if (this.startedAt === undefined && this.attempt === 0) return undefined
    switch (this.status) {
      case 'pending':
        return 'accepted'
      case 'running':
        return this.rare.isBackingOff ? 'accepted' : 'running'
      case 'cancelling':
        return 'running'
      case 'skipped':
        return undefined
      default:
        return this.status
    }
  }
}

/**
 * The children of a task with `for_each`, or of a group, which stand in their graph behind all tasks that were submitted.
 *
 * The edges of the graph know nothing of them. The children of a plain task share its definition, one for each element, and
 * have no dependencies. An element of a group has a child for each member, next to each other; these depend on each other as
 * the members do. Graphs without fan-out have none of this.
 */
export class FanOut {
  readonly parent: Task
  /** Position of the first child, once the graph has the children. The others follow it. */
  first = 0
  /** Number of elements; 1 for a group without `for_each`. */
  readonly elements: number
  /** What each element of a group consists of; undefined for the children of a plain task. */
  readonly members: Members | undefined
  /** Number of children. */
  readonly count: number
  /** The elements, until the parent has ended. */
  #items: readonly unknown[] | undefined
  /** The placeholders of inputs, found at their first use: those of each member, or of all children of a plain task. */
  #places: (Places | undefined)[] = []

  /** Children before this index were queued, wait for their dependencies, or had ended. The others wait for their elements. */
  next = 0
  /** Elements that have begun, with children that have not ended. */
  readonly active = new Set<number>()
  /** Children that have not ended. */
  open: number
  /** For each element of a group the same. */
  readonly #openOf: Uint32Array | undefined
  /** Why children that have not started are cancelled: with the parent (empty), or for this reason. */
  stop: string | undefined = undefined
  /** Children before this index were cancelled because of `stop`, or were not to be. */
  stopped = 0
  /** The record of the parent was deleted: children before this index were deleted with it. */
  deleted = 0
  /** The outcome of the parent is being determined. */
  isEnding = false
  /** The scheduler has it on its list of work. */
  isQueued = false

  constructor(parent: Task, items: readonly unknown[] | undefined, elements: number) {
    const { tasks } = parent.options
    this.parent = parent
    this.#items = items
    this.elements = elements
    this.members = tasks === undefined ? undefined : new Members(tasks)
    this.count = elements * this.width
    this.open = this.count
    if (this.members !== undefined) this.#openOf = new Uint32Array(elements).fill(this.width)
  }

  /** Number of children for each element. */
  get width(): number {
    return this.members?.tasks.length ?? 1
  }

  /** False for a group without `for_each`. */
  get hasList(): boolean {
    return this.parent.options.for_each !== undefined
  }

  /** How many elements may be under way at a time. */
  get maxParallel(): number {
    return this.parent.options.max_parallel ?? Number.POSITIVE_INFINITY
  }

  /** Whether `child`, which has not ended, is not to start: it is cancelled because of `stop`, or deleted with the parent. */
  stops(child: Task): boolean {
    if (this.stop === undefined && !this.parent.isDeleted) return false
    if (this.parent.status === 'cancelling') return true
    if (hasStarted(child)) return false
    return this.members === undefined || this.parent.isDeleted || !this.#hasBegun(this.indexOf(child))
  }

  /** Whether a child for this element has started. */
  #hasBegun(element: number): boolean {
    const { width } = this
    for (let m = 0; m < width; m++) if (hasStarted(this.child(element * width + m))) return true
    return false
  }

  /** Notes that `child` has ended, or was deleted before it ran. */
  ended(child: Task): void {
    this.open--
    const element = this.indexOf(child)
    if (this.#openOf === undefined || --this.#openOf[element]! === 0) this.active.delete(element)
  }

  child(index: number): Task {
    return this.parent.graph.tasks[this.first + index]!
  }

  /** The children of the elements that are under way. */
  *activeChildren(): Generator<Task, void> {
    const { width } = this
    for (const element of this.active) for (let m = 0; m < width; m++) yield this.child(element * width + m)
  }

  /** Whether `child` is before `next`. */
  isReached({ position }: Task): boolean {
    return position - this.first < this.next
  }

  /** Whether `child` waits for others of these children, which are as many as may run at a time. */
  isHeldBack(child: Task): boolean {
    return !this.isReached(child) && this.active.size >= this.maxParallel
  }

  /** The index of the element for which `child` runs. */
  indexOf({ position }: Task): number {
    return Math.floor((position - this.first) / this.width)
  }

  #memberOf({ position }: Task): number {
    return (position - this.first) % this.width
  }

  /** The child that `child` calls `id`: that of the same element. Undefined if no member has this id. */
  siblingOf(child: Task, id: string): Task | undefined {
    const member = this.members?.positionOf(id)
    return member === undefined ? undefined : this.child(this.indexOf(child) * this.width + member)
  }

  dependentCount(child: Task): number {
    return this.members === undefined ? 0 : lengthAt(this.members.edges.dependentsStart, this.#memberOf(child))
  }

  dependent(child: Task, i: number): Task {
    const { dependents, dependentsStart } = this.members!.edges
    const member = this.#memberOf(child)
    return this.parent.graph.tasks[child.position - member + dependents[dependentsStart[member]! + i]!]!
  }

  dependencyCount(child: Task): number {
    return this.members === undefined ? 0 : lengthAt(this.members.edges.dependenciesStart, this.#memberOf(child))
  }

  dependency(child: Task, i: number): Task {
    const { dependencies, dependenciesStart } = this.members!.edges
    const member = this.#memberOf(child)
    return this.parent.graph.tasks[child.position - member + dependencies[dependenciesStart[member]! + i]!]!
  }

  /** The element for which `child` runs. Undefined once the parent has ended. */
  itemOf(child: Task): { readonly value: unknown } | undefined {
    return this.#items === undefined ? undefined : { value: this.#items[this.indexOf(child)] }
  }

  /** The elements for a restart. Undefined where the definition of the parent has them, or no restart needs them. */
  get itemsToKeep(): readonly unknown[] | undefined {
    return isReferenceToList(this.parent.options.for_each) ? this.#items : undefined
  }

  placesOf(child: Task): Places | undefined {
    return this.#places[this.#memberOf(child)]
  }

  keepPlaces(child: Task, places: Places): void {
    this.#places[this.#memberOf(child)] = places
  }

  /** Frees what only children that have not ended need. */
  release(): void {
    this.#items = undefined
    this.#places = []
  }
}

/** A child whose first attempts were missed (`queue_timeout`) is running, but has not started. */
const hasStarted = ({ startedAt, status, rare }: Task): boolean =>
  startedAt !== undefined || !(NOT_STARTED.has(status) || rare.isBackingOff === true)

const NOT_STARTED: ReadonlySet<TaskStatus> = new Set(['pending', 'skipped', 'cancelled'])
