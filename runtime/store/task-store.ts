/**
 * The tasks, and the only functions that change them.
 *
 * Tasks that have not ended are also in memory; ended tasks are rows only. A change is visible at once and durable with
 * the next group commit. Two changes are visible only once they are durable: that a task exists, and that it has ended.
 * So no crash takes back what a caller was told.
 */
import type { Database } from 'bun:sqlite'
import { ServiceError } from '../../shared/contract/errors.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { type NewEvent, NO_EVENTS, readEvents, type TaskEvent, withEvents } from './events.ts'
import type { GroupCommit } from './group-commit.ts'
import { type Change, changed, LiveTask, type Terms, withPromised } from './live-task.ts'
import {
  endedBefore,
  endTask,
  eventsOf,
  hasTask,
  insertTask,
  lastOrdinal,
  listTasks,
  liveTasks,
  liveTasksWith,
  removeTask,
  requestOf,
  type TaskFilter,
  type TaskRow,
  taskById,
  updateTask,
} from './tasks.ts'

/** Milliseconds for the acceptance of a task, which takes a sync of the disk, and those between two looks whether it is over. */
const ACCEPTANCE_MS = 5_000
const ACCEPTANCE_PAUSE_MS = 5

export interface Acceptance {
  /** The whole request, JSON. */
  readonly request: string
  /** Those of the row, which is parsed without them. */
  readonly terms?: Terms
  readonly events: readonly NewEvent[]
}

/** Callbacks for the end of a task, with the row as others will see it. They must not throw. */
export interface EndHooks {
  /** During the sync. */
  readonly meanwhile?: (row: TaskRow) => void
  /** Once it is durable. */
  readonly beforeSeen?: (row: TaskRow) => void
}

export class TaskStore {
  readonly #db: Database
  readonly #commit: GroupCommit
  readonly #live = new Map<string, LiveTask>()
  /** Ids of tasks whose acceptance is not durable yet. */
  readonly #arriving = new Set<string>()
  /** Ended tasks whose removal is not durable yet. Until then they are visible and their ids are taken. */
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

  /** Live tasks whose requests have `field`, and maybe others in which a key of a map is called so. */
  liveWith(field: 'priority' | 'secrets'): LiveTask[] {
    return liveTasksWith(this.#db, field).flatMap((id) => this.#live.get(id) ?? [])
  }

  liveTask(id: string): LiveTask | undefined {
    return this.#live.get(id)
  }

  get(id: string): TaskRow | undefined {
    if (this.#arriving.has(id)) return undefined
    return this.#live.get(id)?.row ?? this.#leaving.get(id) ?? taskById(this.#db, id) ?? undefined
  }

  /** Whether the id is taken, even by a task that is still being accepted. */
  has(id: string): boolean {
    return this.#live.has(id) || this.#arriving.has(id) || this.#leaving.has(id) || hasTask(this.#db, id)
  }

  /** Resolves once no task with this id is being accepted. Rejects with 503 if that takes long. */
  async decided(id: string): Promise<void> {
    const end = performance.now() + ACCEPTANCE_MS
    while (this.#arriving.has(id)) {
      if (performance.now() > end) throw new ServiceError(503, `task ${id} is just being accepted (try again)`)
      await Bun.sleep(ACCEPTANCE_PAUSE_MS)
    }
  }

  /** Why nothing can be written now; undefined if changes can be. */
  get fault(): unknown {
    return this.#commit.fault
  }

  /** Writes the visible changes of live tasks before a caller is told of them. */
  expose(): void {
    this.#commit.flush()
  }

  list(filter: TaskFilter): TaskRow[] {
    this.#commit.settle()
    // A task that is being accepted has a row but no answer yet, and the row of a refused one may not be undone yet.
    const rows = listTasks(this.#db, { ...filter, limit: filter.limit + this.#arriving.size })
    return rows.filter(({ task_id }) => !this.#arriving.has(task_id)).slice(0, filter.limit)
  }

  events(id: string): TaskEvent[] {
    this.#commit.settle()
    return readEvents(eventsOf(this.#db, id) ?? NO_EVENTS)
  }

  /**
   * Accepts a task with its first events. Its id must be free. Resolves when the task is durable. Rejects when it
   * cannot be; then nothing of it is left, or, on a failing disk, nothing is visible until nothing is left (`has`).
   * `forgotten` is called after a refused task that had been written was taken back, before its id is free. It must not
   * throw.
   */
  async accept(
    fresh: Omit<TaskRow, 'ordinal'>,
    { request, terms, events }: Acceptance,
    forgotten = () => {},
  ): Promise<LiveTask> {
    const row: TaskRow = { ...fresh, ordinal: ++this.#lastOrdinal }
    const task = new LiveTask(row, withEvents(NO_EVENTS, events, row.created_at), terms)
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
      // If a failing disk does not let us take the row back yet, the task stays hidden: a rollback may restore the row.
      if (!isTakenBack && !hasTask(this.#db, task.task_id)) this.#arriving.delete(task.task_id)
      throw error
    }
  }

  /** Changes a task. Resolves when the change is durable. */
  change(task: LiveTask, change: Change): Promise<void> {
    return this.#commit.fact(this.#applied(task, change))
  }

  /** The same when nobody waits for it. If the task ends soon, the change is written with its end. */
  note(task: LiveTask, change: Change): void {
    this.#commit.unhurriedFact(this.#applied(task, change), () => task.isEnding)
  }

  /**
   * Promises a change to a caller: it is durable and visible when this resolves. Rejects with 503 when it cannot be
   * written, and then nothing has changed. A task that ends meanwhile ends without the change. One at a time for each
   * task.
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

  /** Ends a task. Others see the end when it is durable. */
  async end(task: LiveTask, change: Change, { meanwhile, beforeSeen }: EndHooks = {}): Promise<TaskRow> {
    const now = Date.now()
    const row = changed(task.row, change.patch, now)
    const events = withEvents(task.events, change.events, now)
    task.isEnding = true
    await this.#commit.fact(() => endTask(this.#db, row, events), {
      meanwhile: () => meanwhile?.(row),
      usesReserve: true,
    })
    beforeSeen?.(row)
    this.#live.delete(task.task_id)
    task.end(row)
    return row
  }

  /** Ids of tasks that ended before `ms`, the oldest first. */
  endedBefore(ms: number, limit: number): string[] {
    return endedBefore(this.#db, ms, limit)
  }

  /** Removes ended tasks. */
  remove(ids: readonly string[]): Promise<void> {
    return this.#commit.fact(() => {
      for (const id of ids) removeTask(this.#db, id)
    })
  }

  /**
   * Removes an ended task. `beforeFree` runs once the removal is durable, while the id is still taken. Rejects with 503
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
        { undone: keep, usesReserve: true }, // it frees the space of the files of the task
      )
      beforeFree()
      keep()
    } catch (error) {
      // A committed removal is undone as soon as the disk allows. Until then the row is shown from memory.
      if (!isTakenBack && hasTask(this.#db, task_id)) keep()
      throw error
    }
  }

  /** The request of a task that has not ended. */
  requestOf(id: string): TaskRequest {
    const request = requestOf(this.#db, id)
    if (request === null) throw new Error(`the database has no request of task ${id}`)
    return JSON.parse(request) as TaskRequest
  }

  /**
   * Each write stores the latest state of a task, so the order of writes does not matter. The end of a task has all of it,
   * and may be written before this.
   */
  #applied(task: LiveTask, { patch, events }: Change): () => void {
    const now = Date.now()
    task.change(changed(task.row, patch, now))
    task.events = withEvents(task.events, events, now)
    return () => {
      if (!task.isEnding) this.#update(task)
    }
  }

  #update(task: LiveTask): void {
    const { row, events } = withPromised(task)
    updateTask(this.#db, row, events)
  }
}
