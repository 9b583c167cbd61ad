/**
 * State that few tasks have, in an object of its own that a task gets with the first of these fields. Pure.
 *
 * There may be a million tasks, and an undefined field takes as much memory as any other. Fields that a restart needs have
 * the names under which the log keeps them (`task-fields.ts`); the others never leave the memory.
 */
import type { AttemptRecord, ProgressEntry, Retried, ReusedFrom } from '../../shared/contract/control.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import type { SkipStanding } from '../rules/conditions.ts'
import type { Failure } from '../rules/failure.ts'
import type { ResultFile } from '../rules/result-file.ts'

/** Identifies an attempt that another service carries out. The attempt may outlive our process. */
export interface Handle {
  /** The id of the attempt in that service. */
  readonly id: string
  /** Whether the service has confirmed the attempt. Otherwise its answer may have been lost. */
  readonly isTaken: boolean
  /** The owner of the attempt in that service, if the service requires it to end the attempt. */
  readonly owner?: string | undefined
  /** The name of that service, if the executor has several. Absent in files of earlier versions. */
  readonly runtime?: string | undefined
  /** How often a service of that name had been lost when the attempt was placed there. Absent: never. */
  readonly losses?: number | undefined
  /** Hashes of files that are moved there first, by the path of the input. */
  readonly bundles?: Readonly<Record<string, string>> | undefined
}

/** Times are milliseconds since 1970. */
export interface RareState {
  /** The condition was met, and the task has not started. */
  condition_met?: true | undefined
  /** Id of the dynamic task whose result added the task. */
  added_by?: string | undefined
  /** The revision of the graph whose patch added the task, or gave it its definition. */
  added?: number | undefined
  /** When an approval that waits for its answer was asked for. */
  asked_at?: number | undefined
  /** The input with values instead of placeholders, in the form of `keptInput`. Undefined until the first attempt. */
  resolved_input?: unknown
  /** The file with a large resolved input, until the task has ended. Then `resolved_input` is only its digest. */
  input_file?: ResultFile | undefined
  /** Attempts that use up no retry: those that a stop of the service interrupted, and all before a retry in place. */
  interrupted_attempts?: number | undefined
  failure?: Failure | undefined
  /** The `error` of the record. */
  error?: string | undefined
  /** The standing of a skipped task. Undefined means `bad`, as in all graphs without rules. */
  skip_standing?: SkipStanding | undefined
  progress?: ProgressEntry[] | undefined
  /** Records of the last attempts, newest last. Undefined until a first attempt was followed by another one. */
  attempts?: readonly AttemptRecord[] | undefined
  /** Leader of the process group of the running attempt, if it started a process. */
  process?: ProcessIdentity | undefined
  /** The handle of the last attempt, if another service carries it out. */
  handle?: Handle | undefined
  /** How often it was retried in place, alone or with a task that it depends on, and by whom. */
  retried?: Retried | undefined
  /** The task whose outcome a rerun reused for this one. */
  reused_from?: ReusedFrom | undefined

  /** Creation time of a recovered task that was not created with its graph. */
  createdAt?: number | undefined
  /** The running task waits between two attempts. Then it holds no slot. */
  isBackingOff?: true | undefined
  /** Why the last look of a wait was not met. */
  unmet?: string | undefined
  /** The input has placeholders. Then the executor gets `resolved_input`. */
  hasPlaceholders?: true | undefined
}

/** The state of all tasks that have none of these fields. */
export const NO_RARE_STATE: Readonly<RareState> = Object.freeze({})
