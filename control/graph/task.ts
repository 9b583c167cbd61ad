/**
 * A task in memory.
 *
 * It knows its graph and its position there; who depends on it, the graph knows. There may be a million of these: times
 * are numbers (milliseconds since 1970), what is absent is undefined, and what few tasks have lies in two objects that
 * the others do without (`rarities.ts`). Were all in one, 100,000 tasks that have none of it would take 23.5 MB of the
 * heap instead of 20.3. Once its graph is accepted only the store changes what a task is, in `TaskStore.apply`.
 */
import type { AttemptRecord, ErrorCode, ProgressEntry, RunStatus } from '../../shared/contract/control.ts'
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import type { ProcessIdentity } from '../../shared/processes.ts'
import type { Graph } from './graph.ts'
import { normalizeTool, type ToolRef } from './normalize.ts'
import { type Extras, extrasOf, Rarities } from './rarities.ts'
import type { ValidTask } from './validate.ts'

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
  /** The name under which that service has it, where ending it there takes one. */
  readonly owner?: string | undefined
}

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

  /** How the last attempts ended, the newest last; undefined until one has ended that is not the last. */
  get attempts(): readonly AttemptRecord[] | undefined {
    return this.#rarities?.attempts
  }

  set attempts(records: readonly AttemptRecord[] | undefined) {
    if (records !== this.attempts) this.#rarely().attempts = records
  }

  /** The leading process of the attempt that executes, where it has one. */
  get process(): ProcessIdentity | undefined {
    return this.#rarities?.process
  }

  set process(process: ProcessIdentity | undefined) {
    if (process !== this.process) this.#rarely().process = process
  }

  /** Of the last attempt. A pending task that has one goes on with that attempt instead of beginning another. */
  /** Its attempt of an earlier run goes on in another service, and is to be followed again. */
  get goesOnElsewhere(): boolean {
    return this.status === 'pending' && this.handle !== undefined
  }

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
