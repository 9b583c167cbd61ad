/** The rows of tasks: one function for each statement. Columns keep their names in the code. */
import type { Database } from 'bun:sqlite'
import type { RuntimeStatus } from '../../shared/contract/runtime-status.ts'

/** A stored task. Times are milliseconds since 1970; records of the wire are JSON texts. */
export interface TaskRow {
  /** Order of acceptance. */
  ordinal: number
  readonly task_id: string
  status: RuntimeStatus
  readonly tenant: string | null
  readonly owner: string | null
  /** Trace id of the request that submitted the task. */
  readonly trace_id: string | null
  readonly created_at: number
  updated_at: number
  /** When its resources were last reserved, and when they were released. */
  reserved_at: number | null
  released_at: number | null
  started_at: number | null
  finished_at: number | null
  /** The boot during which its launcher was started, or was about to be. */
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
  /** Null without any. */
  inputs: string | null
  /** Lengths of the output at the end of the task. Null before, and where they are not known. */
  stdout_bytes: number | null
  stderr_bytes: number | null
  /** The user of its sandbox, from its reservation on. Null where it has that of the service. */
  sandbox_uid: number | null
}

/** Columns apart from the row: they are long and rarely read. */
export interface TaskTexts {
  /** The whole request, from which the task can start. Null once the task has ended. */
  readonly request: string | null
  /** Its events (events.ts). */
  readonly events: string
}

/** Columns that never change. */
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

/** Columns that change. */
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
  'inputs',
  'stdout_bytes',
  'stderr_bytes',
  'sandbox_uid',
]

const COLUMNS: readonly (keyof TaskRow)[] = [...FIXED, ...CHANGING]

// By position: SQLite would have to look up a name for each value of each statement.
const INSERT = `insert into tasks (${COLUMNS.join(', ')}, request, events) values (${COLUMNS.map(() => '?').join(', ')}, ?, ?)`
const CHANGES = CHANGING.map((name) => `${name} = ?`).join(', ')
const UPDATE = `update tasks set ${CHANGES}, events = ? where ordinal = ?`
const END = `update tasks set ${CHANGES}, events = ?, request = null where ordinal = ?`
const SELECT = `select ${COLUMNS.join(', ')} from tasks`

const pick = (row: TaskRow, names: readonly (keyof TaskRow)[]) => names.map((name) => row[name])

export function insertTask(db: Database, row: TaskRow, { request, events }: TaskTexts): void {
  db.query(INSERT).run(...pick(row, COLUMNS), request, events)
}

/** Writes the columns that may have changed. */
export function updateTask(db: Database, row: TaskRow, events: string): void {
  db.query(UPDATE).run(...pick(row, CHANGING), events, row.ordinal)
}

/** The same when the task ends. An ended task is never started again, so its request is removed. */
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

/** Ids of tasks that have not ended and whose requests have `field`. In JSON, no text has its name so: quotes are escaped. */
export const liveTasksWith = (db: Database, field: string): string[] =>
  db
    .query<{ task_id: string }, [string]>(
      `select task_id from tasks where status in ('accepted', 'running') and instr(request, ?) > 0`,
    )
    .all(`"${field}":`)
    .map(({ task_id }) => task_id)

export const lastOrdinal = (db: Database): number =>
  db.query<{ last: number | null }, []>('select max(ordinal) as last from tasks').get()?.last ?? 0

export interface TaskFilter {
  readonly status: RuntimeStatus | null
  readonly tenant: string | null
  /** Only tasks accepted after this one. */
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
