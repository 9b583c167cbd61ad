/**
 * The tasks, and the one way in which they change.
 *
 * Tasks that have not ended are in memory too; ended ones are rows alone. A change is visible at once, durable with the
 * next group commit. Two changes are visible only when durable: that a task exists, and that it has ended. So no crash
 * takes back what somebody was told.
 */
import type { Database } from 'bun:sqlite'
import type { Reservation } from '../../shared/contract/runtime.ts'
import { type EventRow, eventsOf, insertEvents, lastSeq } from './events.ts'
import type { GroupCommit } from './group-commit.ts'
import {
  endedBefore,
  endTask,
  hasTask,
  insertTask,
  lastOrdinal,
  listTasks,
  liveTasks,
  removeTask,
  requestOf,
  type TaskFilter,
  type TaskRow,
  taskById,
  updateTask,
} from './tasks.ts'

/** An event before it has its number. */
export interface NewEvent {
  readonly event_type: string
  readonly message: string
  readonly data?: object | undefined
  /** Milliseconds since 1970; left out: now. */
  readonly timestamp?: number
}

/** What of a row may change; `updated_at` becomes now unless it is given. */
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
  >
>

export interface Change {
  readonly patch: TaskPatch
  readonly events: readonly NewEvent[]
}

export interface Acceptance {
  /** The whole request, JSON. */
  readonly request: string
  readonly events: readonly NewEvent[]
}

/** A task that has not ended. */
export class LiveTask {
  row: TaskRow
  /** Number of its last event. */
  lastSeq: number
  /** Of whose quota it takes, and what. */
  readonly tenant: string | undefined
  readonly reservation: Reservation
  /** What is answered about it once it has ended, JSON: for those who wait, so that it is made once. */
  finalStatus: string | undefined
  readonly #ended = Promise.withResolvers<TaskRow>()
  constructor(row: TaskRow, seq: number) {
    this.row = row
    this.lastSeq = seq
    this.tenant = row.tenant ?? undefined
    this.reservation = JSON.parse(row.reservation) as Reservation
  }
  get task_id(): string {
    return this.row.task_id
  }
  /** Resolves with the last row once the end is durable. */
  get ended(): Promise<TaskRow> {
    return this.#ended.promise
  }
  /** For the store alone. */
  end(row: TaskRow): void {
    this.row = row
    this.#ended.resolve(row)
  }
}

export class TaskStore {
  readonly #db: Database
  readonly #commit: GroupCommit
  readonly #live = new Map<string, LiveTask>()
  /** Ids of tasks whose acceptance is not durable yet. */
  readonly #arriving = new Set<string>()
  #lastOrdinal: number

  constructor(db: Database, commit: GroupCommit) {
    this.#db = db
    this.#commit = commit
    this.#lastOrdinal = lastOrdinal(db)
    for (const row of liveTasks(db)) this.#live.set(row.task_id, new LiveTask(row, lastSeq(db, row.task_id)))
  }

  /** Tasks that have not ended, in the order of their acceptance. */
  get live(): IterableIterator<LiveTask> {
    return this.#live.values()
  }

  liveTask(id: string): LiveTask | undefined {
    return this.#live.get(id)
  }

  get(id: string): TaskRow | undefined {
    if (this.#arriving.has(id)) return undefined
    return this.#live.get(id)?.row ?? taskById(this.#db, id) ?? undefined
  }

  /** Whether the id is taken, by a task that is just being accepted too. */
  has(id: string): boolean {
    return this.#live.has(id) || this.#arriving.has(id) || hasTask(this.#db, id)
  }

  /** Writes what is seen of live tasks and not written yet: before somebody is told of it. */
  expose(): void {
    this.#commit.flush()
  }

  list(filter: TaskFilter): TaskRow[] {
    this.#commit.settle()
    return listTasks(this.#db, filter)
  }

  events(id: string): EventRow[] {
    this.#commit.settle()
    return eventsOf(this.#db, id)
  }

  /**
   * Takes in a task with its first events; its id is free. Resolves when that is durable, and rejects when it cannot be;
   * then nothing of the task is left.
   */
  async accept(fresh: Omit<TaskRow, 'ordinal'>, { request, events }: Acceptance): Promise<LiveTask> {
    const row: TaskRow = { ...fresh, ordinal: ++this.#lastOrdinal }
    const task = new LiveTask(row, 0)
    const rows = this.#numbered(task, events, row.created_at)
    this.#arriving.add(task.task_id)
    try {
      await this.#commit.request(
        () => {
          insertTask(this.#db, row, request)
          insertEvents(this.#db, rows)
        },
        () => {
          removeTask(this.#db, row.task_id)
          this.#arriving.delete(row.task_id)
        },
      )
      this.#live.set(task.task_id, task)
      this.#arriving.delete(task.task_id)
      return task
    } catch (error) {
      // One that a failing disk does not let us take back yet stays hidden.
      if (!hasTask(this.#db, task.task_id)) this.#arriving.delete(task.task_id)
      throw error
    }
  }

  /** A change in the life of a task. Resolves when it is durable. */
  change(task: LiveTask, change: Change): Promise<void> {
    return this.#commit.fact(this.#applied(task, change))
  }

  /** The same, where nobody waits for the disk. */
  note(task: LiveTask, change: Change): void {
    this.#commit.unhurriedFact(this.#applied(task, change))
  }

  /** The end of a task: seen by others when it is durable. `beforeSeen` is told how it will be seen. */
  async end(task: LiveTask, change: Change, beforeSeen: (row: TaskRow) => void): Promise<TaskRow> {
    const now = Date.now()
    const row = changed(task.row, change.patch, now)
    const rows = this.#numbered(task, change.events, now)
    await this.#commit.fact(() => {
      endTask(this.#db, row)
      insertEvents(this.#db, rows)
    })
    beforeSeen(row)
    this.#live.delete(task.task_id)
    task.end(row)
    return row
  }

  /** Ids of tasks that ended before `ms`, the oldest first. */
  endedBefore(ms: number, limit: number): string[] {
    return endedBefore(this.#db, ms, limit)
  }

  /** Forgets tasks that have ended. */
  remove(ids: readonly string[]): Promise<void> {
    return this.#commit.fact(() => {
      for (const id of ids) removeTask(this.#db, id)
    })
  }

  /** The request of a task that has not ended, JSON. */
  requestOf(id: string): string {
    const request = requestOf(this.#db, id)
    if (request === null) throw new Error(`the database has no request of task ${id}`)
    return request
  }

  #applied(task: LiveTask, { patch, events }: Change): () => void {
    const now = Date.now()
    const row = changed(task.row, patch, now)
    task.row = row
    const rows = this.#numbered(task, events, now)
    return () => {
      updateTask(this.#db, row)
      insertEvents(this.#db, rows)
    }
  }

  #numbered(task: LiveTask, events: readonly NewEvent[], now: number): EventRow[] {
    return events.map(({ event_type, message, data, timestamp = now }) => ({
      task_id: task.task_id,
      seq: ++task.lastSeq,
      event_type,
      timestamp,
      message,
      data: data === undefined ? null : JSON.stringify(data),
    }))
  }
}

const changed = (row: TaskRow, patch: TaskPatch, now: number): TaskRow => ({ ...row, updated_at: now, ...patch })
