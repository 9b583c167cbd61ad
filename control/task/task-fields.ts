/**
 * The fields of a task, in the order of its record. Pure.
 *
 * The names that submissions may have, what a restart keeps of an earlier entry when it finds a newer state, and what the log
 * keeps of the rare state come from this table. `record.ts` makes the values, `restored-task.ts` takes them back.
 */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { RareState } from './rare-state.ts'

interface TaskField {
  /** Callers see it in the record: as they submitted it, or as the service set it. Absent: only a restart needs it. */
  readonly shown?: 'submitted' | 'set'
  /** Each state has it. Otherwise it never changes. */
  readonly isState?: true
  /** A field of `Task.rare`, which the log keeps as it is. */
  readonly isRare?: true
}

const submitted = { shown: 'submitted' } as const
const set = { shown: 'set' } as const
const state = { shown: 'set', isState: true } as const
const rare = { shown: 'set', isState: true, isRare: true } as const
const hidden = { isState: true } as const
const hiddenRare = { isState: true, isRare: true } as const

export const TASK_FIELDS = {
  id: submitted,
  type: submitted,
  tool_name: submitted,
  execution_category: set,
  params: submitted,
  input: submitted,
  resolved_input: rare,
  depends_on: submitted,
  run_if: submitted,
  when: submitted,
  continue_on_error: submitted,
  for_each: submitted,
  max_parallel: submitted,
  fail_fast: submitted,
  dynamic: submitted,
  tasks: submitted,
  retry: submitted,
  retry_on: submitted,
  backoff: submitted,
  cache: submitted,
  timeout: submitted,
  queue_timeout: submitted,
  priority: submitted,
  not_before: submitted,
  secrets: submitted,
  annotations: submitted,
  graph_id: set,
  parent: set,
  index: set,
  replaced: set,
  reused_from: rare,
  retried: rare,
  added_by: rare,
  created_at: set,
  status: state,
  run_status: state,
  attempt: state,
  child_count: state,
  handle_id: state,
  placed_on: state,
  result: state,
  error: rare,
  runtime: state,
  progress: rare,
  attempts: rare,
  waiting: set,
  updated_at: state,
  started_at: state,
  finished_at: state,

  attempt_started_at: hidden,
  failure: hidden,
  result_file: hidden,
  input_file: hidden,
  interrupted_attempts: hidden,
  condition_met: hiddenRare,
  asked_at: hiddenRare,
  added: hiddenRare,
  skip_standing: hiddenRare,
  process: hiddenRare,
  handle_taken: hidden,
  handle_owner: hidden,
  handle_losses: hidden,
  handle_bundles: hidden,
} as const satisfies Rows

/** A field of the record that has no row does not compile. */
type Rows = Readonly<Record<keyof TaskRecord, TaskField & { readonly shown: string }>> &
  Readonly<Record<string, TaskField>>

type Fields = typeof TASK_FIELDS

/** Names of the fields of the record that each state has. */
export type StateName = keyof TaskRecord &
  { [N in keyof Fields]: Fields[N] extends { isState: true } ? N : never }[keyof Fields]

/** Names of the fields of the rare state that the log keeps as they are. */
export type KeptRareName = keyof RareState &
  { [N in keyof Fields]: Fields[N] extends { isRare: true } ? N : never }[keyof Fields]

const ENTRIES = Object.entries(TASK_FIELDS) as readonly [keyof Fields, TaskField][]

const namesOf = (isWanted: (field: TaskField) => boolean): string[] =>
  ENTRIES.filter(([, field]) => isWanted(field)).map(([name]) => name)

export type HiddenRareName = Exclude<KeptRareName, keyof TaskRecord>

/** Callers may submit a record as a task: these are known and ignored. */
export const NAMES_SET_BY_SERVICE: readonly string[] = namesOf(({ shown }) => shown === 'set')

export const KEPT_RARE_NAMES = namesOf(({ isRare }) => isRare === true) as readonly KeptRareName[]

/** Those of them that the record lacks. */
export const HIDDEN_RARE_NAMES = namesOf(
  ({ isRare, shown }) => isRare === true && shown === undefined,
) as readonly HiddenRareName[]

const STATE_NAMES: ReadonlySet<string> = new Set(namesOf(({ isState }) => isState === true))

/** The constant part of an entry. A state replaces all of the rest, including fields that it lacks. */
export function withoutState<E extends object>(entry: E): Partial<E> {
  const identity: Partial<E> = {}
  for (const name in entry) if (!STATE_NAMES.has(name)) identity[name] = entry[name]
  return identity
}
