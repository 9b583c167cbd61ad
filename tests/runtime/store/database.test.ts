/** Databases of earlier versions open, with all that they hold; those of later ones are left as they are. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tasksDir } from '../../../runtime/files/task-dir.ts'
import { databasePath, openDatabase } from '../../../runtime/store/database.ts'
import { GroupCommit } from '../../../runtime/store/group-commit.ts'
import { TaskStore } from '../../../runtime/store/task-store.ts'
import { WalSync } from '../../../runtime/store/wal-sync.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import type { TaskRequest } from '../../../shared/request/validate.ts'
import { HELD, NO_RESERVE } from '../../support/held.ts'
import { tempDir } from '../../support/temp.ts'

/** What schema 1 was, with two tasks. */
const SCHEMA_1 = `
  create table tasks (
    ordinal integer primary key, task_id text not null unique, status text not null, tenant text, owner text,
    trace_id text, created_at integer not null, updated_at integer not null, reserved_at integer, released_at integer,
    started_at integer, finished_at integer, launch_boot_id text, kill_requested_at integer, launcher_pid integer,
    pid integer, pgid integer, exit_code integer, exit_signal integer, error text, usage text,
    execution_plan text not null, reservation text not null, limits text not null, is_script integer not null,
    metadata text, request text
  );
  create index tasks_by_status on tasks (status, ordinal);
  create index tasks_by_tenant on tasks (tenant, ordinal) where tenant is not null;
  create index tasks_by_end on tasks (finished_at) where finished_at is not null;
  create table events (
    task_id text not null, seq integer not null, event_type text not null, timestamp integer not null,
    message text not null, data text, primary key (task_id, seq)
  ) without rowid;
  create table probe (id integer primary key, written_at integer not null);
  insert into tasks (ordinal, task_id, status, created_at, updated_at, finished_at, execution_plan, reservation, limits, is_script, request)
    values (1, 'ended', 'success', 1000, 3000, 3000, '{}', '{}', '{}', 0, null),
           (2, 'waiting', 'accepted', 2000, 2000, null, '{}', '{}', '{}', 0, '{"task_id":"waiting"}');
  insert into events (task_id, seq, event_type, timestamp, message, data)
    values ('ended', 2, 'finished', 3000, 'a "quoted" end', '{"status":"success"}'),
           ('ended', 1, 'accepted', 1000, 'taken in', null);
  pragma user_version = 1;
`

test('a database of schema 1 keeps its tasks and their events', () => {
  using dir = tempDir()
  const old = new Database(databasePath(dir.path))
  old.run(SCHEMA_1)
  old.close()
  for (const _ of ['the first start', 'the next one']) {
    using db = openDatabase(dir.path)
    const commit = new GroupCommit({
      db,
      sync: new WalSync(databasePath(dir.path)),
      directory: HELD,
      reserve: NO_RESERVE,
      log: silentLog(),
    })
    const store = new TaskStore(db, commit)
    expect(store.events('ended')).toEqual([
      { seq: 1, event_type: 'accepted', timestamp: 1000, message: 'taken in', data: {} },
      { seq: 2, event_type: 'finished', timestamp: 3000, message: 'a "quoted" end', data: { status: 'success' } },
    ])
    expect(store.events('waiting')).toEqual([])
    expect([...store.live].map(({ task_id }) => task_id)).toEqual(['waiting'])
    expect(store.requestOf('waiting')).toEqual({ task_id: 'waiting' } as TaskRequest)
    expect(store.get('ended')?.inputs).toBeNull()
  }
})

test('a database of a newer version is left as it is', () => {
  using dir = tempDir()
  const newer = new Database(databasePath(dir.path))
  newer.run('pragma user_version = 99')
  newer.close()
  expect(() => openDatabase(dir.path)).toThrow('its schema is 99')
  using db = new Database(databasePath(dir.path))
  expect(db.query('pragma user_version').get()).toEqual({ user_version: 99 })
})

describe('a database that is gone while there are tasks', () => {
  test.each([
    ['missing', () => {}],
    ['empty', (path: string) => writeFileSync(path, '')],
  ])('is not made anew when it is %s, and says what to do', (_, make) => {
    using dir = tempDir()
    mkdirSync(join(tasksDir(dir.path), 'a'), { recursive: true })
    make(databasePath(dir.path))
    const before = readdirSync(dir.path)
    for (let i = 0; i < 2; i++) {
      expect(() => openDatabase(dir.path)).toThrow(/no database that knows them .*restore .*--data-dir.*move .* away/)
      expect(readdirSync(dir.path)).toEqual(before)
    }
  })

  test('is none that has no task yet: a first start crashed', () => {
    using dir = tempDir()
    mkdirSync(tasksDir(dir.path))
    openDatabase(dir.path).close()
    mkdirSync(join(tasksDir(dir.path), 'a'))
    openDatabase(dir.path).close()
  })

  test('is told from one that was just made by what is on the disk before there is a task', () => {
    using dir = tempDir()
    using _db = openDatabase(dir.path)
    const copy = join(dir.path, 'copy.db') // without the log, of which a power cut may leave nothing
    copyFileSync(databasePath(dir.path), copy)
    using found = new Database(copy)
    expect(found.query<{ user_version: number }, []>('pragma user_version').get()!.user_version).toBeGreaterThan(0)
  })
})
