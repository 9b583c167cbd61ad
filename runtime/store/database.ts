/**
 * The database of the runtime service: SQLite, written by this process alone.
 *
 * It keeps a write-ahead log with `synchronous=NORMAL`. A commit that returned survives the end of the process. It
 * survives a power cut once the log is synced, which `group-commit.ts` does: one sync serves all commits that came
 * before it.
 */
import { Database } from 'bun:sqlite'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf, UsageError } from '../../shared/contract/errors.ts'
import { tasksDir } from '../files/task-dir.ts'

/** Raised by one with every entry of `MIGRATIONS`. */
const SCHEMA_VERSION = 5

/**
 * Migrations, one for each schema version. They never change, so that every old database can be opened.
 *
 * Times are milliseconds since 1970. Columns named after records of the wire (`error`, `usage`, `execution_plan`,
 * `reservation`, `limits`, `metadata`) hold them as JSON. `request` is the whole request of a task that has not ended,
 * so that a queued task can start even if its directory is gone. `events` are the events of the task in their order,
 * each as `[event_type, timestamp, message, data]`; before schema 2 they were rows. `inputs`, since schema 3, are the
 * inputs of a task as its status shows them. `stdout_bytes` and `stderr_bytes`, since schema 4, are the lengths of the output
 * at the end of the task. `sandbox_uid`, since schema 5, is the user of its sandbox. A reservation is live from
 * `reserved_at` until `released_at`, and is kept for audit. `probe` is written to check whether the database takes a
 * write.
 */
const MIGRATIONS: readonly string[] = [
  `
  create table tasks (
    ordinal integer primary key,
    task_id text not null unique,
    status text not null,
    tenant text,
    owner text,
    trace_id text,
    created_at integer not null,
    updated_at integer not null,
    reserved_at integer,
    released_at integer,
    started_at integer,
    finished_at integer,
    launch_boot_id text,
    kill_requested_at integer,
    launcher_pid integer,
    pid integer,
    pgid integer,
    exit_code integer,
    exit_signal integer,
    error text,
    usage text,
    execution_plan text not null,
    reservation text not null,
    limits text not null,
    is_script integer not null,
    metadata text,
    request text
  );
  create index tasks_by_status on tasks (status, ordinal);
  create index tasks_by_tenant on tasks (tenant, ordinal) where tenant is not null;
  create index tasks_by_end on tasks (finished_at) where finished_at is not null;

  create table events (
    task_id text not null,
    seq integer not null,
    event_type text not null,
    timestamp integer not null,
    message text not null,
    data text,
    primary key (task_id, seq)
  ) without rowid;

  create table probe (
    id integer primary key,
    written_at integer not null
  );
  `,
  `
  alter table tasks add column events text not null default '[]';
  update tasks set events = (
    select json_group_array(json_array(event_type, timestamp, message, json(data)))
    from (select * from events where events.task_id = tasks.task_id order by seq)
  );
  drop table events;
  `,
  'alter table tasks add column inputs text',
  `
  alter table tasks add column stdout_bytes integer;
  alter table tasks add column stderr_bytes integer;
  `,
  'alter table tasks add column sandbox_uid integer',
]

export const databasePath = (dataDir: string): string => join(dataDir, 'runtime.db')

/** The database file, and the files that SQLite keeps beside it. */
export const databaseFiles = (dataDir: string): string[] =>
  ['', '-wal', '-shm'].map((suffix) => databasePath(dataDir) + suffix)

/**
 * Opens `<dataDir>/runtime.db`, or makes it. Throws `UsageError` when it cannot be read, or is missing although there
 * are tasks, and then changes nothing.
 */
export function openDatabase(dataDir: string): Database {
  const path = databasePath(dataDir)
  const isNew = !existsSync(path)
  if (isNew) refuseToForget(dataDir)
  try {
    const db = new Database(path, { create: true, readwrite: true, strict: true })
    const found = schemaOf(db, path)
    if (found === 0) refuseToForget(dataDir)
    // The order matters: the journal mode belongs to the file, the other settings to the connection.
    db.run('pragma journal_mode = wal')
    db.run('pragma synchronous = normal')
    db.run('pragma foreign_keys = off')
    db.run('pragma temp_store = memory')
    migrate(db, found)
    // On disk before there is a task: from then on a database without a schema is one that was lost.
    if (found === 0) db.run('pragma wal_checkpoint(truncate)')
    return db
  } catch (error) {
    if (error instanceof UsageError) throw error
    const what = isNew ? 'cannot make the database' : 'cannot read the database'
    const remedy = isNew || isFull(error) ? 'free some space' : 'restore it from a backup'
    throw new UsageError(
      `${what} ${path}: ${messageOf(error)} (${remedy}, or choose another directory with --data-dir)`,
    )
  }
}

/** Reading takes some room, too: for the shared-memory file, and to recover the log of a crash. */
const isFull = (error: unknown): boolean =>
  /^SQLITE_(FULL|IOERR_WRITE|IOERR_SHM\w+|IOERR_TRUNCATE)$/.test(systemCodeOf(error) ?? '')

/**
 * Throws when tasks have directories: a database without tables is new or was emptied, and a start would remove them
 * all.
 */
function refuseToForget(dataDir: string): void {
  const tasks = tasksDir(dataDir)
  if (!existsSync(tasks) || !readdirSync(tasks, { withFileTypes: true }).some((entry) => entry.isDirectory())) return
  throw new UsageError(
    `there are tasks in ${tasks}, but no database that knows them (restore ${databasePath(dataDir)} from a backup, choose another directory with --data-dir, or move ${tasks} away to begin anew)`,
  )
}

function schemaOf(db: Database, path: string): number {
  const { user_version: found } = db.query<{ user_version: number }, []>('pragma user_version').get()!
  if (found <= SCHEMA_VERSION) return found
  throw new UsageError(
    `the database ${path} was written by a newer taskmill-runtime (its schema is ${found}, this one knows ${SCHEMA_VERSION}): use that one, or choose another directory with --data-dir`,
  )
}

function migrate(db: Database, found: number): void {
  db.transaction(() => {
    for (const step of MIGRATIONS.slice(found)) db.run(step)
    db.run(`pragma user_version = ${SCHEMA_VERSION}`)
  }).immediate()
}
