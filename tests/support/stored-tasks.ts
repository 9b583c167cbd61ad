/** A database of tasks in its own directory, and tasks to insert. */
import { mkdirSync } from 'node:fs'
import { tasksDir } from '../../runtime/files/task-dir.ts'
import { databasePath, openDatabase } from '../../runtime/store/database.ts'
import { GroupCommit, type Sync } from '../../runtime/store/group-commit.ts'
import type { LiveTask } from '../../runtime/store/live-task.ts'
import { TaskStore } from '../../runtime/store/task-store.ts'
import type { TaskRow } from '../../runtime/store/tasks.ts'
import { WalSync } from '../../runtime/store/wal-sync.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { HELD, NO_RESERVE } from './held.ts'
import { tempDir } from './temp.ts'

/** An accepted task that nothing has happened to. */
export const acceptedRow = (task_id: string, more: Partial<TaskRow> = {}): Omit<TaskRow, 'ordinal'> => ({
  task_id,
  status: 'accepted',
  tenant: null,
  owner: null,
  trace_id: null,
  created_at: 1_000,
  updated_at: 1_000,
  reserved_at: null,
  released_at: null,
  started_at: null,
  finished_at: null,
  launch_boot_id: null,
  kill_requested_at: null,
  launcher_pid: null,
  pid: null,
  pgid: null,
  exit_code: null,
  exit_signal: null,
  error: null,
  usage: null,
  execution_plan: '{"effective_sandbox":{"profile":"process"}}',
  reservation: '{"task_slots":1,"pids":4}',
  limits: '{}',
  is_script: 0,
  metadata: null,
  inputs: null,
  stdout_bytes: null,
  stderr_bytes: null,
  sandbox_uid: null,
  ...more,
})

/** `syncThrough` stands between the store and the disk. */
export function storedTasks(syncThrough: (sync: Sync) => Sync = (sync) => sync) {
  const temp = tempDir()
  mkdirSync(tasksDir(temp.path))
  const db = openDatabase(temp.path)
  const commit = new GroupCommit({
    ...{ db, directory: HELD, reserve: NO_RESERVE, log: silentLog() },
    sync: syncThrough(new WalSync(databasePath(temp.path))),
  })
  const store = new TaskStore(db, commit)
  return {
    ...{ path: temp.path, db, commit, store },
    accept: (id: string, more: Partial<TaskRow> = {}): Promise<LiveTask> =>
      store.accept(acceptedRow(id, more), { request: '{}', events: [] }),
    /** Milliseconds since 1970; default: long ago. */
    end: (task: LiveTask, finished_at = 5_000) =>
      store.end(task, { patch: { status: 'success', finished_at }, events: [] }),
    [Symbol.dispose]: () => {
      commit.flush()
      db.close()
      temp[Symbol.dispose]()
    },
  }
}
