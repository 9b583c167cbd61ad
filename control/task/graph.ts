/**
 * A graph and its tasks in memory.
 *
 * Dependencies never leave a graph, so the graph is the unit of ownership. `Graph` and `Task` refer to each other and
 * share this file; the children of a task are in `fan-out.ts`. The graph holds the edges, by positions of tasks, while at
 * least one of its tasks is live.
 * Once a graph is accepted, only `TaskStore.apply` changes its tasks.
 *
 * There may be a million tasks. So times are numbers (milliseconds since 1970), absent values are undefined, and fields
 * that few tasks use are in separate objects (`task-options.ts`, `rare-state.ts`).
 */

import type { RunStatus } from '../../shared/contract/control.ts'
import type { OnEndState } from '../../shared/contract/on-end.ts'
import type { RunIf } from '../../shared/contract/run-if.ts'
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import type { SecretNames } from '../../shared/request/secrets.ts'
import { hasRule, STANDING_BITS, standingOf } from '../rules/conditions.ts'
import { dependencyCounts, type Edges, lengthAt } from '../rules/edges.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { normalizeTool, type ToolRef } from '../rules/normalize.ts'
import { atEndOf } from '../rules/on-end.ts'
import type { Pause } from '../rules/pause.ts'
import type { ValidGraph, ValidTask } from '../rules/validate.ts'
import type { FanOut } from './fan-out.ts'
import type { GraphPatches } from './graph-patches.ts'
import { NO_RARE_STATE, type RareState } from './rare-state.ts'
import { type TaskOptions, taskOptions } from './task-options.ts'

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
  readonly submittedBy?: string | undefined
  readonly tenant?: string | undefined
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
  /** Name of the token that submitted it. Undefined for the token of the service. */
  readonly submittedBy: string | undefined
  /** Whose graph it is: the tenant of that token. Undefined for a token without one, and for that of the service. */
  readonly tenant: string | undefined
  /** Milliseconds since 1970. Set again when the graph is written to disk: lists are in the order of these times. */
  createdAt: number
  /** The submitted fields beside the tasks. */
  readonly options: GraphOptions
  /**
   * The tasks that were submitted, then the children of tasks with `for_each` and of groups. A patch gives the graph another
   * list: what works in steps goes on with the list with which it has begun.
   */
  tasks: Task[] = []
  /** The fan-outs of its tasks, in the order of their children. Undefined for most graphs. */
  fanOuts: FanOut<Task>[] | undefined = undefined
  /** Number of tasks of each type, as submitted. There are few types; a map would cost more than the rest of a small graph. */
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
  /** Its tasks of `on_end`. Undefined for most graphs. */
  atEnd: Task[] | undefined = undefined
  /** Whether all other tasks have ended, so that those of `on_end` have their turn. */
  isAtEnd = false
  /** Whether somebody has begun to cancel all of it, since its last retry. A restart forgets that. */
  isCancelled = false
  /** Undefined unless a caller paused it and it has not ended. */
  pause: Pause | undefined = undefined
  /** Undefined unless a caller has changed it since it was accepted. */
  patched: GraphPatches | undefined = undefined
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
    { id, ordinal, traceId, traceState, submittedBy, tenant, createdAt, options = NO_GRAPH_OPTIONS }: GraphIdentity,
    edges: Edges,
  ) {
    this.id = id
    this.ordinal = ordinal
    this.traceId = traceId
    this.traceState = traceState
    this.submittedBy = submittedBy
    this.tenant = tenant
    this.createdAt = createdAt
    this.options = options
    this.#edges = edges
    this.missing = dependencyCounts(edges)
  }

  /**
   * Whether ids of tasks belong to the graph: callers find the tasks only within the graph. Those of a tenant always do, so
   * that no tenant can take or try an id of another.
   */
  get isScoped(): boolean {
    return this.options.scope === 'graph' || this.tenant !== undefined
  }

  /** Whether all tasks but those of `on_end` have ended. */
  get haveOthersEnded(): boolean {
    const { atEnd = [] } = this
    return this.live === atEnd.filter((task) => !task.isTerminal && !task.neverRuns).length
  }

  /** Appends tasks to a new graph: `inputs` from `from` to `to`. */
  add(inputs: readonly ValidTask[], from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const task = new Task(this, i, inputs[i]!)
      this.#push(task)
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
  addChildren(fanOut: FanOut<Task>, children: readonly Task[]): void {
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
    this.#push(task)
    if (bringsRule(task.options) || task.rare.skip_standing !== undefined) this.#ensureStandings()
  }

  #push(task: Task): void {
    this.tasks.push(task)
    if (task.atEnd === undefined) return
    this.atEnd ??= []
    this.atEnd.push(task)
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

  /**
   * `tasks` are pending again, after a retry: counts what each of them waits for, from the ends of its dependencies. A graph
   * that had ended gets its `edges` back.
   */
  waitAgain(edges: Edges, tasks: readonly Task[]): void {
    if (this.#edges === RELEASED_EDGES) {
      this.#edges = edges
      this.missing = new Uint32Array(this.tasks.length)
      if (this.hasRules) this.standings = new Uint8Array(this.tasks.length)
    }
    for (const task of tasks) {
      const { position } = task
      this.missing[position] = 0
      if (this.hasRules) this.standings[position] = 0
      const isToBeTold = task.childOf?.isReached(task) === false // of all ends, when its element begins
      for (let i = 0; i < this.dependencyCount(task); i++) {
        const dependency = this.dependency(task, i)
        const standing = standingOf(dependency)
        if (isToBeTold) this.missing[position]!++
        else if (this.hasRules ? standing === undefined : dependency.status !== 'success') this.missing[position]!++
        else if (this.hasRules) this.standings[position]! |= STANDING_BITS[standing!]
      }
    }
  }

  /**
   * Gives the graph other tasks in place of those that were submitted: `submitted`, with `edges` between them. `added` are those
   * that it did not have. No dependent waits to be told of an end.
   */
  patch({ submitted, edges, added }: PatchedTasks): void {
    const first = this.submittedCount
    const tasks = [...submitted, ...this.tasks.slice(first)]
    const missing = new Uint32Array(tasks.length)
    const standings = this.hasRules ? new Uint8Array(tasks.length) : NO_STANDINGS
    for (const [position, task] of tasks.entries()) {
      if (task.position >= 0) {
        missing[position] = this.missing[task.position] ?? 0
        if (this.hasRules) standings[position] = this.standings[task.position] ?? 0
      }
      task.position = position
    }
    for (const fanOut of this.fanOuts ?? []) fanOut.first += submitted.length - first
    Object.assign(this, { tasks, missing, standings })
    this.#edges = edges
    const hadRules = this.hasRules
    if (added.some(({ options }) => bringsRule(options))) this.#ensureStandings()
    const isCounted = (task: Task) => !task.isTerminal && task.childOf?.isReached(task) !== false
    this.waitAgain(edges, hadRules === this.hasRules ? added : tasks.filter(isCounted))
  }

  /** Frees the edges, which only a live graph needs. */
  releaseEdges(): void {
    this.#edges = RELEASED_EDGES
    this.missing = NO_POSITIONS
    this.standings = NO_STANDINGS
  }
}

/** What a patch makes of the tasks of a graph. */
export interface PatchedTasks {
  readonly submitted: readonly Task[]
  readonly edges: Edges
  /** Their positions are -1 until the graph has them. */
  readonly added: readonly Task[]
  readonly removed: readonly Task[]
}

/** Whether the task, or a member of the group that it is, has a rule. */
const bringsRule = (options: TaskOptions): boolean =>
  hasRule(options) || options.tasks?.some((member) => hasRule(taskOptions(member))) === true

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

/** A task: its definition, its place in the graph, and its state. Times are milliseconds since 1970. */
export class Task {
  readonly graph: Graph
  /** Index in the list of its graph; -1 for a task that no graph has yet. Patches change it. */
  position: number
  readonly id: string
  readonly #tool: ToolRef
  readonly params: unknown
  /** The input of the executor: `input` if given, else `params`. */
  readonly input: unknown
  readonly dependsOn: readonly string[] | undefined
  readonly options: TaskOptions
  /** Its children, or those that it is one of. Undefined for most tasks. */
  #fanOut: FanOut<Task> | undefined

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
    childOf?: FanOut<Task>,
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
  get fanOut(): FanOut<Task> | undefined {
    return this.#fanOut?.parent === this ? this.#fanOut : undefined
  }

  set fanOut(fanOut: FanOut<Task> | undefined) {
    this.#fanOut = fanOut
  }

  /** What the task is a child of; undefined for a task that was submitted. */
  get childOf(): FanOut<Task> | undefined {
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

  /** In which state of the graph it runs, if it is one of `on_end`. */
  get atEnd(): OnEndState | undefined {
    return atEndOf(this.id, this.graph.options)
  }

  /** Whether it is one of `on_end` that waits for the end of all others. */
  get waitsForEnd(): boolean {
    return this.atEnd !== undefined && !this.graph.haveOthersEnded
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
