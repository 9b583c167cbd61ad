/**
 * A graph and its tasks in memory.
 *
 * The graph is the unit of ownership: dependencies never leave it. A task knows its position in its graph; who depends
 * on it is in the graph's `edges`. There may be a million of these, so a task is one flat object, times are numbers
 * (milliseconds since 1970) and what is absent is undefined. Only the store changes them, in `TaskStore.apply`.
 */
import type { ErrorCode, ProgressEntry, RunStatus } from '../../shared/contract/control.ts'
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import type { ProcessIdentity } from '../../shared/processes.ts'
import { inRanges, type Slices } from '../../shared/slices.ts'
import { normalizeTool, type ToolRef } from './normalize.ts'
import { dependencyCounts, type Edges } from './order.ts'
import { type Extras, extrasOf, Rarities } from './rarities.ts'
import type { ValidGraph, ValidTask } from './validate.ts'

/** Why an attempt failed. `message` is the cause alone; what the task's `error` says is `errorText`. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable?: boolean
  readonly source?: string
  readonly details?: unknown
}

/** Where an attempt is carried out, when that is another service: its end there does not depend on ours. */
export interface Handle {
  /** What it goes by there. */
  readonly id: string
  /** That service has said that it has it. Until then it may or may not: the answer can have been lost. */
  readonly isTaken: boolean
}

/**
 * One object of 160 bytes, which with all that it can have would be one of 256: what few tasks have lies in two others
 * (100,000 tasks: 9 MB less at the peak).
 */
export class Task {
  readonly graph: Graph
  readonly position: number
  readonly id: string
  readonly #tool: ToolRef
  readonly params: unknown
  /** What the executor gets: `input` where it was given, else `params`. */
  readonly input: unknown
  readonly dependsOn: readonly string[] | undefined
  readonly #extras: Extras

  status: TaskStatus = 'pending'
  /** The number of the last attempt; 0 before the first. */
  attempt = 0
  /** The record was deleted or replaced; the task itself is kept until its graph has no more use for its outcome. */
  isDeleted = false

  /** Undefined until the first change after the graph was taken in. */
  updatedAt: number | undefined = undefined
  startedAt: number | undefined = undefined
  attemptStartedAt: number | undefined = undefined
  finishedAt: number | undefined = undefined
  result: unknown = undefined
  /** Sequence number of the last change of the task itself; 0 when only its graph's acceptance concerned it. */
  seq = 0
  /** Its newest state is not in the journal yet. `Persistence` alone looks at it: a set of such tasks costs more. */
  isUnwritten = false
  #rarities: Rarities | undefined = undefined

  constructor(graph: Graph, position: number, input: ValidTask) {
    this.graph = graph
    this.position = position
    this.id = input.id
    this.#tool = normalizeTool(input.type, input.tool_name ?? undefined)
    this.params = input.params ?? undefined
    this.input = input.input ?? this.params
    this.dependsOn = input.depends_on ?? undefined
    this.#extras = extrasOf(input)
  }

  get type(): string {
    return this.#tool.type
  }

  get toolName(): string | undefined {
    return this.#tool.toolName
  }

  get retry(): number {
    return this.#extras.retry
  }

  /** Milliseconds for each attempt as given; undefined, 0 and negative mean no timeout. */
  get timeout(): number | undefined {
    return this.#extras.timeout
  }

  get annotations(): Readonly<Record<string, string>> | undefined {
    return this.#extras.annotations
  }

  /** Running, but between two attempts: no slot is held. */
  get isBackingOff(): boolean {
    return this.#rarities?.isBackingOff === true
  }

  set isBackingOff(isBackingOff: boolean) {
    if (isBackingOff !== this.isBackingOff) this.#rarely().isBackingOff = isBackingOff
  }

  /** Attempts that a stop of the service cut short. They use up no retry. */
  get interruptedAttempts(): number {
    return this.#rarities?.interruptedAttempts ?? 0
  }

  set interruptedAttempts(count: number) {
    if (count !== this.interruptedAttempts) this.#rarely().interruptedAttempts = count
  }

  /** Of a task of an earlier run that was not created with its graph; else the graph's. */
  get ownCreatedAt(): number | undefined {
    return this.#rarities?.ownCreatedAt
  }

  set ownCreatedAt(at: number | undefined) {
    if (at !== this.ownCreatedAt) this.#rarely().ownCreatedAt = at
  }

  get failure(): Failure | undefined {
    return this.#rarities?.failure
  }

  set failure(failure: Failure | undefined) {
    if (failure !== this.failure) this.#rarely().failure = failure
  }

  /** The `error` of the record. */
  get errorText(): string | undefined {
    return this.#rarities?.errorText
  }

  set errorText(text: string | undefined) {
    if (text !== this.errorText) this.#rarely().errorText = text
  }

  get progress(): ProgressEntry[] | undefined {
    return this.#rarities?.progress
  }

  set progress(entries: ProgressEntry[] | undefined) {
    if (entries !== this.progress) this.#rarely().progress = entries
  }

  /** The leading process of the attempt that executes, where it has one. */
  get process(): ProcessIdentity | undefined {
    return this.#rarities?.process
  }

  set process(process: ProcessIdentity | undefined) {
    if (process !== this.process) this.#rarely().process = process
  }

  /** Of the last attempt. A pending task that has one goes on with that attempt instead of beginning another. */
  get handle(): Handle | undefined {
    return this.#rarities?.handle
  }

  set handle(handle: Handle | undefined) {
    if (handle !== this.handle) this.#rarely().handle = handle
  }

  /** Whether there is anything of what most tasks never have. */
  get hasRarities(): boolean {
    return this.#rarities !== undefined
  }

  #rarely(): Rarities {
    this.#rarities ??= new Rarities()
    return this.#rarities
  }

  get createdAt(): number {
    return this.ownCreatedAt ?? this.graph.createdAt
  }

  get isTerminal(): boolean {
    return isTerminal(this.status)
  }

  /** Attempts that count against `retry`. */
  get usedAttempts(): number {
    return this.attempt - this.interruptedAttempts
  }

  /** Undefined until the task has started; a skipped one never does. */
  get runStatus(): RunStatus | undefined {
    if (this.startedAt === undefined) return undefined
    switch (this.status) {
      case 'pending':
        return 'accepted'
      case 'running':
        return this.isBackingOff ? 'accepted' : 'running'
      case 'cancelling':
        return 'running'
      case 'skipped':
        return undefined
      default:
        return this.status
    }
  }
}

const NOBODY = new Uint32Array(0)
const RELEASED: Edges = {
  dependenciesStart: NOBODY,
  dependencies: NOBODY,
  dependentsStart: NOBODY,
  dependents: NOBODY,
}

export interface GraphIdentity {
  readonly id: string
  readonly ordinal: number
  readonly traceId: string
  readonly createdAt: number
}

export interface TypeCount {
  readonly type: string
  count: number
}

export class Graph {
  readonly id: string
  /** Number of the graph in the order in which its data directory took them in. */
  readonly ordinal: number
  readonly traceId: string
  /** Milliseconds since 1970. Set anew when the graph is put on disk: the order of the list is the order of these. */
  createdAt: number
  readonly tasks: Task[] = []
  /** How many tasks there are of each type. A list, as there are few: a map costs more than the rest of a small graph. */
  readonly typeCounts: TypeCount[] = []
  #edges: Edges
  /** Dependencies of each task that have not succeeded yet. The scheduler counts them down; they follow from statuses. */
  missing: Uint32Array
  /** Tasks that have not ended. */
  live = 0
  /** When the last task ended, in milliseconds since 1970; undefined while one has not. */
  endedAt: number | undefined = undefined
  /** The graph was kept for long enough: nobody sees it any more. */
  isRetired = false
  /** Tasks that are neither deleted nor replaced. */
  visible = 0
  /** Sequence number of the change that accepted the graph; 0 for one of an earlier run. */
  acceptedSeq = 0
  /** The graph's tasks can be seen; false while they are being taken in. */
  isAccepted = false

  constructor({ id, ordinal, traceId, createdAt }: GraphIdentity, edges: Edges) {
    this.id = id
    this.ordinal = ordinal
    this.traceId = traceId
    this.createdAt = createdAt
    this.#edges = edges
    this.missing = dependencyCounts(edges)
  }

  /** Adds the next tasks of a new graph: those of `inputs` from `from` to `to`. */
  add(inputs: readonly ValidTask[], from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const task = new Task(this, i, inputs[i]!)
      this.tasks.push(task)
      this.#count(task)
    }
    this.live += to - from
  }

  #count(task: Task): void {
    for (const known of this.typeCounts) {
      if (known.type !== task.type) continue
      known.count++
      return
    }
    this.typeCounts.push({ type: task.type, count: 1 })
  }

  /** Tasks that wait for no other; all of them, and no copy of the list, where no task depends on any. */
  roots(): readonly Task[] {
    if (this.#edges.dependencies.length === 0) return this.tasks
    return this.tasks.filter(({ position }) => this.missing[position] === 0)
  }

  /** How many tasks depend on `task`, one counted as often as it names it. 0 once the graph has ended. */
  dependentCount({ position }: Task): number {
    const { dependentsStart } = this.#edges
    return (dependentsStart[position + 1] ?? 0) - (dependentsStart[position] ?? 0)
  }

  /** The `i`-th of those that depend on `task`. One at a time: a view of all costs more than most have dependents. */
  dependent({ position }: Task, i: number): Task {
    const { dependents, dependentsStart } = this.#edges
    return this.tasks[dependents[dependentsStart[position]! + i]!]!
  }

  /** What `task` depends on. Empty once the graph has ended. */
  dependenciesOf({ position }: Task): Task[] {
    const { dependencies, dependenciesStart } = this.#edges
    const positions = dependencies.subarray(dependenciesStart[position] ?? 0, dependenciesStart[position + 1] ?? 0)
    return Array.from(positions, (dependency) => this.tasks[dependency]!)
  }

  /** Frees what only a live graph needs. */
  releaseEdges(): void {
    this.#edges = RELEASED
    this.missing = NOBODY
  }
}

/** Makes a graph and its tasks out of a valid submission. Yields, as there may be many. */
export function* createGraph({ tasks, edges }: ValidGraph, identity: GraphIdentity): Slices<Graph> {
  const graph = new Graph(identity, edges)
  yield* inRanges(tasks.length, (from, to) => graph.add(tasks, from, to))
  return graph
}
