/**
 * The state of a task: its fields that change. Times are milliseconds since 1970. Once the graph is accepted, only
 * `TaskStore.apply` changes them.
 */
import type { AttemptRecord, ProgressEntry, ReusedFrom, RunStatus } from '../../shared/contract/control.ts'
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import { ColdFields, type Handle } from './cold-fields.ts'
import type { SkipStanding } from './conditions.ts'
import type { Failure } from './failure.ts'
import type { ResultFile } from './result-file.ts'

export class TaskState {
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
  #cold: ColdFields | undefined = undefined

  /** Whether the record was deleted. */
  get isDeleted(): boolean {
    return this.removal === 'deleted'
  }

  /** Whether another task has taken the id. Callers find this task only within its graph. */
  get isReplaced(): boolean {
    return this.removal === 'replaced'
  }

  /** Whether the condition was met. False again after the start. */
  get isConditionMet(): boolean {
    return this.#cold?.isConditionMet === true
  }

  set isConditionMet(isMet: boolean) {
    if (isMet !== this.isConditionMet) this.#ensureCold().isConditionMet = isMet
  }

  /** When an approval that waits for its answer was asked for, in milliseconds since 1970. */
  get askedAt(): number | undefined {
    return this.#cold?.askedAt
  }

  set askedAt(at: number | undefined) {
    if (at !== this.askedAt) this.#ensureCold().askedAt = at
  }

  /** Whether the running task waits between two attempts. Then it holds no slot. */
  get isBackingOff(): boolean {
    return this.#cold?.isBackingOff === true
  }

  set isBackingOff(isBackingOff: boolean) {
    if (isBackingOff !== this.isBackingOff) this.#ensureCold().isBackingOff = isBackingOff
  }

  /** Whether the input has placeholders. Then the executor gets `resolvedInput`. */
  get hasPlaceholders(): boolean {
    return this.#cold?.hasPlaceholders === true
  }

  set hasPlaceholders(has: boolean) {
    if (has !== this.hasPlaceholders) this.#ensureCold().hasPlaceholders = has
  }

  /** The input with values instead of placeholders, in the form of `keptInput`. Undefined until the first attempt. */
  get resolvedInput(): unknown {
    return this.#cold?.resolvedInput
  }

  set resolvedInput(kept: unknown) {
    if (kept !== this.resolvedInput) this.#ensureCold().resolvedInput = kept
  }

  /** The file with a large resolved input, until the task has ended. Then `resolvedInput` is only its digest. */
  get inputFile(): ResultFile | undefined {
    return this.#cold?.inputFile
  }

  set inputFile(file: ResultFile | undefined) {
    if (file !== this.inputFile) this.#ensureCold().inputFile = file
  }

  /** Attempts that a stop of the service interrupted. They use up no retry. */
  get interruptedAttempts(): number {
    return this.#cold?.interruptedAttempts ?? 0
  }

  set interruptedAttempts(count: number) {
    if (count !== this.interruptedAttempts) this.#ensureCold().interruptedAttempts = count
  }

  /** Creation time of a recovered task that was not created with its graph; undefined for all others. */
  get ownCreatedAt(): number | undefined {
    return this.#cold?.ownCreatedAt
  }

  set ownCreatedAt(at: number | undefined) {
    if (at !== this.ownCreatedAt) this.#ensureCold().ownCreatedAt = at
  }

  get failure(): Failure | undefined {
    return this.#cold?.failure
  }

  set failure(failure: Failure | undefined) {
    if (failure !== this.failure) this.#ensureCold().failure = failure
  }

  /** The `error` of the record. */
  get errorText(): string | undefined {
    return this.#cold?.errorText
  }

  set errorText(text: string | undefined) {
    if (text !== this.errorText) this.#ensureCold().errorText = text
  }

  /** The standing of a skipped task. Undefined means `bad`, as in all graphs without rules. */
  get skipStanding(): SkipStanding | undefined {
    return this.#cold?.skipStanding
  }

  set skipStanding(standing: SkipStanding | undefined) {
    if (standing !== this.skipStanding) this.#ensureCold().skipStanding = standing
  }

  get progress(): ProgressEntry[] | undefined {
    return this.#cold?.progress
  }

  set progress(entries: ProgressEntry[] | undefined) {
    if (entries !== this.progress) this.#ensureCold().progress = entries
  }

  /** Records of the last attempts, newest last. Undefined until a first attempt was followed by another one. */
  get attempts(): readonly AttemptRecord[] | undefined {
    return this.#cold?.attempts
  }

  set attempts(records: readonly AttemptRecord[] | undefined) {
    if (records !== this.attempts) this.#ensureCold().attempts = records
  }

  /** Leader of the process group of the running attempt, if it started a process. */
  get process(): ProcessIdentity | undefined {
    return this.#cold?.process
  }

  set process(process: ProcessIdentity | undefined) {
    if (process !== this.process) this.#ensureCold().process = process
  }

  /** The handle of the last attempt, if another service carries it out. */
  get handle(): Handle | undefined {
    return this.#cold?.handle
  }

  set handle(handle: Handle | undefined) {
    if (handle !== this.handle) this.#ensureCold().handle = handle
  }

  /** The task whose outcome a rerun reused for this one. */
  get reusedFrom(): ReusedFrom | undefined {
    return this.#cold?.reusedFrom
  }

  set reusedFrom(from: ReusedFrom | undefined) {
    if (from !== this.reusedFrom) this.#ensureCold().reusedFrom = from
  }

  /** Whether the task has used any of its cold fields. */
  get hasColdFields(): boolean {
    return this.#cold !== undefined
  }

  #ensureCold(): ColdFields {
    this.#cold ??= new ColdFields()
    return this.#cold
  }

  /**
   * Whether an attempt from an earlier run of control continues in another service. The task follows that attempt
   * instead of starting another.
   */
  get goesOnElsewhere(): boolean {
    return this.status === 'pending' && this.handle !== undefined
  }

  /** Whether the record was deleted before the task ran. */
  get neverRuns(): boolean {
    return this.status === 'pending' && this.isDeleted && this.handle === undefined
  }

  get isTerminal(): boolean {
    return isTerminal(this.status)
  }

  /** Attempts that count against `retry`. */
  get usedAttempts(): number {
    return this.attempt - this.interruptedAttempts
  }

  /** Undefined until the first attempt, which may end before it starts. A skipped task has none. */
  get runStatus(): RunStatus | undefined {
    if (this.startedAt === undefined && this.attempt === 0) return undefined
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
