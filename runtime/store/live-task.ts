/** A task that has not ended, in memory, and its changes. Only `TaskStore` applies them. */
import type { ExecutionPlan, Reservation } from '../../shared/contract/runtime.ts'
import type { Limits } from '../../shared/request/limits.ts'
import { type NewEvent, withEvents } from './events.ts'
import type { TaskRow } from './tasks.ts'

/** The columns that may change. `updated_at` becomes now unless it is given. */
export type TaskPatch = Partial<
  Pick<
    TaskRow,
    | 'status'
    | 'updated_at'
    | 'reserved_at'
    | 'released_at'
    | 'started_at'
    | 'finished_at'
    | 'launch_boot_id'
    | 'kill_requested_at'
    | 'launcher_pid'
    | 'pid'
    | 'pgid'
    | 'exit_code'
    | 'exit_signal'
    | 'error'
    | 'usage'
    | 'inputs'
    | 'stdout_bytes'
    | 'stderr_bytes'
    | 'sandbox_uid'
  >
>

export interface Change {
  readonly patch: TaskPatch
  readonly events: readonly NewEvent[]
}

/** What a task was accepted with, which never changes. The row has it as JSON. */
export interface Terms {
  readonly plan: ExecutionPlan
  readonly limits: Limits
  readonly reservation: Reservation
}

export const termsOf = ({ execution_plan, limits, reservation }: TaskRow): Terms => ({
  plan: JSON.parse(execution_plan) as ExecutionPlan,
  limits: JSON.parse(limits) as Limits,
  reservation: JSON.parse(reservation) as Reservation,
})

const NO_FILES: readonly (readonly string[])[] = []

/** A task that has not ended. */
export class LiveTask {
  row: TaskRow
  /** The events in the form of the database (`events.ts`). */
  events: string
  /** Whether the launcher reported that the task printed nothing. */
  isSilent = false
  /** Paths of files in the workspace that hold, or may hold, secrets. A path is a list of names. */
  secretFiles: readonly (readonly string[])[] = NO_FILES
  /** Set before the task waits. */
  priority = 0
  /** Patterns of the files to keep. Null: all files. Undefined: the request has not been read yet. */
  outputs: readonly string[] | null | undefined
  /** A change that is being promised to a caller. The next commit writes it; until then it is not visible. */
  promised: Change | undefined
  /** Whether the end of the task is being written, together with all earlier changes. */
  isEnding = false
  /** The tenant whose quota the reservation counts against. */
  readonly tenant: string | undefined
  readonly plan: ExecutionPlan
  readonly limits: Limits
  readonly reservation: Reservation
  /** The status of the ended task as JSON. Encoded once for all waiting callers. */
  finalStatus: string | undefined
  readonly #started = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<TaskRow>()
  constructor(row: TaskRow, events: string, { plan, limits, reservation }: Terms = termsOf(row)) {
    this.row = row
    this.events = events
    this.tenant = row.tenant ?? undefined
    this.plan = plan
    this.limits = limits
    this.reservation = reservation
    this.change(row)
  }
  get task_id(): string {
    return this.row.task_id
  }
  /** Whether it runs in a sandbox, as far as its plan says. */
  get isSandboxed(): boolean {
    return this.plan.effective_sandbox.profile === 'linux_sandbox'
  }
  /** Resolves once its process was started. */
  get started(): Promise<void> {
    return this.#started.promise
  }
  /** Resolves with the last row once the end is durable. */
  get ended(): Promise<TaskRow> {
    return this.#ended.promise
  }
  /** Called by the store only. */
  change(row: TaskRow): void {
    this.row = row
    if (row.started_at !== null) this.#started.resolve()
  }
  /** Called by the store only. */
  end(row: TaskRow): void {
    this.row = row
    this.#ended.resolve(row)
  }
}

/** The row and the events of a task, with the promised change. */
export function withPromised({ row, events, promised }: LiveTask): Pick<LiveTask, 'row' | 'events'> {
  if (promised === undefined) return { row, events }
  return { row: { ...row, ...promised.patch }, events: withEvents(events, promised.events, row.updated_at) }
}

/** `row` after a change. */
export const changed = (row: TaskRow, patch: TaskPatch, now: number): TaskRow => ({ ...row, updated_at: now, ...patch })
