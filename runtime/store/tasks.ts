/** The rows of tasks: one function per statement. Columns keep their names in the code. */
import type { Database } from 'bun:sqlite'
import type { RuntimeStatus } from '../../shared/contract/runtime-status.ts'

/** A task as it is kept. Times are milliseconds since 1970; records of the wire are JSON texts. */
export interface TaskRow {
  /** Order of acceptance. */
  ordinal: number
  readonly task_id: string
  status: RuntimeStatus
  readonly tenant: string | null
  readonly owner: string | null
  /** Of the request that submitted it. */
  readonly trace_id: string | null
  readonly created_at: number
  updated_at: number
  /** When what it takes was reserved the last time, and when that was released. */
  reserved_at: number | null
  released_at: number | null
  started_at: number | null
  finished_at: number | null
  /** The boot during which a launcher was, or was about to be, started. */
  launch_boot_id: string | null
  kill_requested_at: number | null
  launcher_pid: number | null
  pid: number | null
  pgid: number | null
  exit_code: number | null
  exit_signal: number | null
  error: string | null
  usage: string | null
  readonly execution_plan: string
  readonly reservation: string
  readonly limits: string
  readonly is_script: number
  readonly metadata: string | null
}

/** What is kept of a task beyond its row: it is long, and seldom asked for. */
export interface TaskTexts {
  /** The whole request, from which the task can start; null once it has ended. */
  readonly request: string | null
  /** Its events (events.ts). */
  readonly events: string
}

/** What a task is for all its life. */
const FIXED: readonly (keyof TaskRow)[] = [
  'ordinal',
  'task_id',
  'tenant',
  'owner',
  'trace_id',
  'created_at',
  'execution_plan',
  'reservation',
  'limits',
  'is_script',
  'metadata',
]

/** What changes in the life of a task. */
const CHANGING: readonly (keyof TaskRow)[] = [
  'status',
  'updated_at',
  'reserved_at',
  'released_at',
  'started_at',
  'finished_at',
  'launch_boot_id',
  'kill_requested_at',
  'launcher_pid',
  'pid',
  'pgid',
  'exit_code',
  'exit_signal',
  'error',
  'usage',
]

const COLUMNS: readonly (keyof TaskRow)[] = [...FIXED, ...CHANGING]

// By place: names would have to be looked up, for each value of each statement.
const INSERT = `insert into tasks (${COLUMNS.join(', ')}, request, events) values (${COLUMNS.map(() => '?').join(', ')}, ?, ?)`
const CHANGES = CHANGING.map((name) => `${name} = ?`).join(', ')
const UPDATE = `update tasks set ${CHANGES}, events = ? where ordinal = ?`
const END = `update tasks set ${CHANGES}, events = ?, request = null where ordinal = ?`
const SELECT = `select ${COLUMNS.join(', ')} from tasks`

const pick = (row: TaskRow, names: readonly (keyof TaskRow)[]) => names.map((name) => row[name])

export function insertTask(db: Database, row: TaskRow, { request, events }: TaskTexts): void {
  db.query(INSERT).run(...pick(row, COLUMNS), request, events)
}

/** Writes what may have changed of a task. */
export function updateTask(db: Database, row: TaskRow, events: string): void {
  db.query(UPDATE).run(...pick(row, CHANGING), events, row.ordinal)
}

/** The same for the last time: an ended task is never started again, so its request goes. */
export function endTask(db: Database, row: TaskRow, events: string): void {
  db.query(END).run(...pick(row, CHANGING), events, row.ordinal)
}

export const taskById = (db: Database, task_id: string): TaskRow | null =>
  db.query<TaskRow, [string]>(`${SELECT} where task_id = ?`).get(task_id)

export const hasTask = (db: Database, task_id: string): boolean =>
  db.query('select 1 from tasks where task_id = ?').get(task_id) !== null

/** The events of a task (events.ts). */
export const eventsOf = (db: Database, task_id: string): string | null =>
  db.query<{ events: string }, [string]>('select events from tasks where task_id = ?').get(task_id)?.events ?? null

/** The request of a task that has not ended, as JSON. */
export const requestOf = (db: Database, task_id: string): string | null =>
  db.query<{ request: string | null }, [string]>('select request from tasks where task_id = ?').get(task_id)?.request ??
  null

/** All tasks that have not ended, in the order of their acceptance. */
export const liveTasks = (db: Database): TaskRow[] =>
  db.query<TaskRow, []>(`${SELECT} where status in ('accepted', 'running') order by ordinal`).all()

export const lastOrdinal = (db: Database): number =>
  db.query<{ last: number | null }, []>('select max(ordinal) as last from tasks').get()?.last ?? 0

export interface TaskFilter {
  readonly status: RuntimeStatus | null
  readonly tenant: string | null
  /** Tasks accepted after this one. */
  readonly afterOrdinal: number
  readonly limit: number
}

/** Tasks in the order of their acceptance. */
export function listTasks(db: Database, { status, tenant, afterOrdinal, limit }: TaskFilter): TaskRow[] {
  const conditions = ['ordinal > $afterOrdinal']
  const values: Record<string, string | number> = { afterOrdinal, limit }
  if (status !== null) {
    conditions.push('status = $status')
    values.status = status
  }
  if (tenant !== null) {
    conditions.push('tenant = $tenant')
    values.tenant = tenant
  }
  return db
    .query<TaskRow, [typeof values]>(`${SELECT} where ${conditions.join(' and ')} order by ordinal limit $limit`)
    .all(values)
}

/** Ids of tasks that ended before `ms`, the oldest first. */
export const endedBefore = (db: Database, ms: number, limit: number): string[] =>
  db
    .query<{ task_id: string }, [number, number]>(
      'select task_id from tasks where finished_at < ? order by finished_at limit ?',
    )
    .all(ms, limit)
    .map(({ task_id }) => task_id)

export function removeTask(db: Database, task_id: string): void {
  db.query('delete from tasks where task_id = ?').run(task_id)
}
