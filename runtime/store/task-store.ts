/**
 * The tasks, and the one way in which they change.
 *
 * Tasks that have not ended are in memory too; ended ones are rows alone. A change is visible at once, durable with the
 * next group commit. Two changes are visible only when durable: that a task exists, and that it has ended. So no crash
 * takes back what somebody was told.
 */
import type { Database } from 'bun:sqlite'
import type { Reservation } from '../../shared/contract/runtime.ts'
import { type NewEvent, NO_EVENTS, readEvents, type TaskEvent, withEvents } from './events.ts'
import type { GroupCommit } from './group-commit.ts'
import {
  endedBefore,
  endTask,
  eventsOf,
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

/** What is to be done about the acceptance of a task. Neither may throw. */
export interface AcceptHooks {
  /** While the disk syncs. */
  readonly meanwhile?: (task: LiveTask) => void
  /** It was refused after it had been written, and now the disk has let us take it back: its id is free in a moment. */
  readonly forgotten?: () => void
}

/** What is to be done about the end of a task, told how it will be seen. Neither may throw. */
export interface EndHooks {
  /** While the disk syncs. */
  readonly meanwhile?: (row: TaskRow) => void
  /** Once it is durable. */
  readonly beforeSeen?: (row: TaskRow) => void
}

/** A task that has not ended. */
export class LiveTask {
  row: TaskRow
  /** As they are kept (events.ts). */
  events: string
  /** Its launcher has seen that it printed nothing. */
  isSilent = false
  /** What a caller is to be promised, while it is being written: on disk with the rest, and not seen yet. */
  promised: Change | undefined
  /** Its end is being written, and with it all that has changed before. */
  isEnding = false
  /** Of whose quota it takes, and what. */
  readonly tenant: string | undefined
  readonly reservation: Reservation
  /** What is answered about it once it has ended, JSON: for those who wait, so that it is made once. */
  finalStatus: string | undefined
  readonly #ended = Promise.withResolvers<TaskRow>()
  constructor(row: TaskRow, events: string) {
    this.row = row
    this.events = events
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
  /** Ended tasks whose removal is not durable yet: they are seen, and their ids taken, until it is. */
  readonly #leaving = new Map<string, TaskRow>()
  #lastOrdinal: number

  constructor(db: Database, commit: GroupCommit) {
    this.#db = db
    this.#commit = commit
    this.#lastOrdinal = lastOrdinal(db)
    for (const row of liveTasks(db))
      this.#live.set(row.task_id, new LiveTask(row, eventsOf(db, row.task_id) ?? NO_EVENTS))
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
    return this.#live.get(id)?.row ?? this.#leaving.get(id) ?? taskById(this.#db, id) ?? undefined
  }

  /** Whether the id is taken, by a task that is just being accepted too. */
  has(id: string): boolean {
    return this.#live.has(id) || this.#arriving.has(id) || this.#leaving.has(id) || hasTask(this.#db, id)
  }

  /** Writes what is seen of live tasks and not written yet: before somebody is told of it. */
  expose(): void {
    this.#commit.flush()
  }

  list(filter: TaskFilter): TaskRow[] {
    this.#commit.settle()
    // Whoever comes is written, but not answered yet; whoever was refused may be written still.
    const rows = listTasks(this.#db, { ...filter, limit: filter.limit + this.#arriving.size })
    return rows.filter(({ task_id }) => !this.#arriving.has(task_id)).slice(0, filter.limit)
  }

  events(id: string): TaskEvent[] {
    this.#commit.settle()
    return readEvents(eventsOf(this.#db, id) ?? NO_EVENTS)
  }

  /**
   * Takes in a task with its first events; its id is free. Resolves when that is durable, and rejects when it cannot be;
   * then nothing of the task is left, or, on a failing disk, nothing is seen of it until nothing is left (`has`).
   */
  async accept(
    fresh: Omit<TaskRow, 'ordinal'>,
    { request, events }: Acceptance,
    { meanwhile = () => {}, forgotten = () => {} }: AcceptHooks = {},
  ): Promise<LiveTask> {
    const row: TaskRow = { ...fresh, ordinal: ++this.#lastOrdinal }
    const task = new LiveTask(row, withEvents(NO_EVENTS, events, row.created_at))
    const texts = { request, events: task.events }
    this.#arriving.add(task.task_id)
    let isTakenBack = false
    try {
      await this.#commit.request(
        () => insertTask(this.#db, row, texts),
        () => {
          isTakenBack = true
          removeTask(this.#db, row.task_id)
        },
        {
          meanwhile: () => meanwhile(task),
          undone: () => {
            forgotten()
            this.#arriving.delete(row.task_id)
          },
        },
      )
      this.#live.set(task.task_id, task)
      this.#arriving.delete(task.task_id)
      return task
    } catch (error) {
      // One that a failing disk does not let us take back yet stays hidden: its row may come back with a rollback.
      if (!isTakenBack && !hasTask(this.#db, task.task_id)) this.#arriving.delete(task.task_id)
      throw error
    }
  }

  /** A change in the life of a task. Resolves when it is durable; `meanwhile` is called while the disk syncs. */
  change(task: LiveTask, change: Change, meanwhile?: () => void): Promise<void> {
    return this.#commit.fact(this.#applied(task, change), meanwhile)
  }

  /** The same, where nobody waits for the disk; if the task ends soon it is written with that. */
  note(task: LiveTask, change: Change): void {
    this.#commit.unhurriedFact(this.#applied(task, change), () => task.isEnding)
  }

  /**
   * A change that a caller is promised: durable, and seen, when this resolves. Rejects with 503 when it cannot be written;
   * then it is as if nobody had asked. A task that ends meanwhile ends without it. One at a time for each task.
   */
  async promise(task: LiveTask, { patch, events }: Change): Promise<void> {
    const now = Date.now()
    task.promised = {
      patch: { updated_at: now, ...patch },
      events: events.map((event) => ({ timestamp: now, ...event })),
    }
    const write = () => {
      if (!task.isEnding) this.#update(task)
    }
    const takeBack = () => {
      task.promised = undefined
      write()
    }
    try {
      await this.#commit.request(write, takeBack)
      if (!task.isEnding) ({ row: task.row, events: task.events } = withPromised(task))
    } finally {
      task.promised = undefined
    }
  }

  /** The end of a task: seen by others when it is durable. */
  async end(task: LiveTask, change: Change, { meanwhile, beforeSeen }: EndHooks = {}): Promise<TaskRow> {
    const now = Date.now()
    const row = changed(task.row, change.patch, now)
    const events = withEvents(task.events, change.events, now)
    task.isEnding = true
    await this.#commit.fact(
      () => endTask(this.#db, row, events),
      () => meanwhile?.(row),
    )
    beforeSeen?.(row)
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

  /**
   * Removes a task that has ended. `beforeFree` runs once that is durable, while the id is still taken. Rejects with 503
   * when the removal cannot be written; the task then stays.
   */
  async delete(row: TaskRow, beforeFree: () => void): Promise<void> {
    const { task_id } = row
    const texts = { request: null, events: eventsOf(this.#db, task_id) ?? NO_EVENTS }
    const keep = () => this.#leaving.delete(task_id)
    let isTakenBack = false
    this.#leaving.set(task_id, row)
    try {
      await this.#commit.request(
        () => removeTask(this.#db, task_id),
        () => {
          isTakenBack = true
          if (!hasTask(this.#db, task_id)) insertTask(this.#db, row, texts)
        },
        { undone: keep },
      )
      beforeFree()
      keep()
    } catch (error) {
      // A removal that was committed is undone when the disk lets us; until then the row is shown from memory.
      if (!isTakenBack && hasTask(this.#db, task_id)) keep()
      throw error
    }
  }

  /** The request of a task that has not ended, JSON. */
  requestOf(id: string): string {
    const request = requestOf(this.#db, id)
    if (request === null) throw new Error(`the database has no request of task ${id}`)
    return request
  }

  /** Whatever is written of a task is its latest state, so it does not matter which of its changes is written when. */
  #applied(task: LiveTask, { patch, events }: Change): () => void {
    const now = Date.now()
    task.row = changed(task.row, patch, now)
    task.events = withEvents(task.events, events, now)
    return () => this.#update(task)
  }

  #update(task: LiveTask): void {
    const { row, events } = withPromised(task)
    updateTask(this.#db, row, events)
  }
}

function withPromised({ row, events, promised }: LiveTask): Pick<LiveTask, 'row' | 'events'> {
  if (promised === undefined) return { row, events }
  return { row: { ...row, ...promised.patch }, events: withEvents(events, promised.events, row.updated_at) }
}

const changed = (row: TaskRow, patch: TaskPatch, now: number): TaskRow => ({ ...row, updated_at: now, ...patch })
