/** The tasks of the runtime service: what is seen when, and what a new start finds. */

import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { databasePath, openDatabase } from '../../../runtime/store/database.ts'
import { GroupCommit } from '../../../runtime/store/group-commit.ts'
import type { LiveTask } from '../../../runtime/store/live-task.ts'
import { TaskStore } from '../../../runtime/store/task-store.ts'
import type { TaskRow } from '../../../runtime/store/tasks.ts'
import { WalSync } from '../../../runtime/store/wal-sync.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import type { TaskRequest } from '../../../shared/request/validate.ts'
import { HELD, NO_RESERVE } from '../../support/held.ts'
import { acceptedRow } from '../../support/stored-tasks.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

let temp: TempDir
let db: Database
let commit: GroupCommit
let store: TaskStore

const open = () => {
  db = openDatabase(temp.path)
  commit = new GroupCommit({
    db,
    sync: new WalSync(databasePath(temp.path)),
    directory: HELD,
    reserve: NO_RESERVE,
    log: silentLog(),
  })
  store = new TaskStore(db, commit)
}
beforeEach(() => {
  temp = tempDir()
  open()
})
afterEach(() => {
  commit.flush()
  db.close()
  temp[Symbol.dispose]()
})

/** What a crash and a new start make of it: whatever is not committed is gone. */
const restart = () => {
  db.close()
  open()
}

const accept = (id: string, more: Partial<TaskRow> = {}): Promise<LiveTask> =>
  store.accept(acceptedRow(id, more), {
    request: `{"id":"${id}"}`,
    events: [{ event_type: 'accepted', message: 'accepted' }],
  })
const end = (task: LiveTask, patch: Partial<TaskRow> = {}) =>
  store.end(task, {
    patch: { status: 'success', finished_at: 5_000, ...patch },
    events: [{ event_type: 'finished', message: 'done' }],
  })
const types = (id: string) => store.events(id).map(({ seq, event_type }) => `${seq} ${event_type}`)

describe('a task that is being accepted', () => {
  test('is seen when it is durable, and its id is taken at once', async () => {
    const accepting = accept('a')
    expect(store.has('a')).toBe(true)
    expect(store.get('a')).toBeUndefined()
    await accepting
    expect(store.get('a')?.status).toBe('accepted')
    restart()
    expect(store.get('a')).toMatchObject(acceptedRow('a'))
    expect(store.requestOf('a')).toEqual({ id: 'a' } as unknown as TaskRequest)
    expect(types('a')).toEqual(['1 accepted'])
  })

  test('leaves nothing when it cannot be written', async () => {
    const { page_count } = db.query<{ page_count: number }, []>('pragma page_count').get()!
    db.run(`pragma max_page_count = ${page_count}`)
    const refusal = await store
      .accept(acceptedRow('a'), { request: 'x'.repeat(100_000), events: [] })
      .catch((error: unknown) => error)
    expect(refusal).toMatchObject({ status: 503 })
    expect(store.has('a')).toBe(false)
    expect(store.get('a')).toBeUndefined()
    db.run('pragma max_page_count = 1000000')
    await accept('a')
    expect(store.get('a')?.task_id).toBe('a')
  })

  test('is hidden, with its id taken, until a failing disk lets it be taken back', async () => {
    let isBroken = true
    const broken = () => {
      if (isBroken) throw Object.assign(new Error('EIO'), { code: 'SQLITE_IOERR' })
    }
    const later = async () => {
      if (isBroken) commit.unhurriedFact(broken) // fails with the undo, which is rolled back
      broken()
    }
    commit = new GroupCommit({
      db,
      sync: { later, now: broken },
      directory: HELD,
      reserve: NO_RESERVE,
      log: silentLog(),
    })
    store = new TaskStore(db, commit)
    const heard: string[] = []
    const forgotten = () => heard.push(`forgotten, ${store.has('a') ? 'its id taken' : 'its id free'}`)
    const accepting = store.accept(acceptedRow('a'), { request: '{}', events: [] }, forgotten)
    expect(await accepting.catch((error: unknown) => error)).toMatchObject({ status: 503 })
    const all = { status: null, tenant: null, afterOrdinal: 0, limit: 10 }
    expect([store.has('a'), store.get('a'), store.list(all), heard]).toEqual([true, undefined, [], []])
    isBroken = false
    commit.flush()
    await until(() => store.has('a'), false)
    expect(heard).toEqual(['forgotten, its id taken'])
    await accept('a')
    expect(store.list(all).map(({ task_id }) => task_id)).toEqual(['a'])
  })

  test('that starts at once has its reservation in the same transaction', async () => {
    await accept('a', { launch_boot_id: 'boot', reserved_at: 7 })
    restart()
    expect([...store.live].map((task) => task.row)).toMatchObject([{ launch_boot_id: 'boot', reserved_at: 7 }])
  })
})

describe('a change', () => {
  test('is seen at once, and events have numbers without gaps', async () => {
    const task = await accept('a')
    store.note(task, { patch: { status: 'running', pid: 7 }, events: [{ event_type: 'started', message: 'started' }] })
    expect(store.get('a')).toMatchObject({ status: 'running', pid: 7 })
    await store.change(task, { patch: {}, events: [{ event_type: 'kill_requested', message: 'kill' }] })
    restart()
    expect(store.get('a')).toMatchObject({ status: 'running', pid: 7 })
    expect(types('a')).toEqual(['1 accepted', '2 started', '3 kill_requested'])
  })

  test('that nobody waits for is written with the next one, or with the end', async () => {
    const [a, b] = [await accept('a'), await accept('b')]
    const started = { patch: { pid: 7 }, events: [{ event_type: 'started', message: 'started' }] }
    store.note(a, started)
    store.note(b, started)
    await store.change(a, { patch: {}, events: [{ event_type: 'kill_requested', message: 'kill' }] })
    await end(b)
    restart()
    expect([store.get('a'), store.get('b')]).toMatchObject([{ pid: 7 }, { pid: 7, status: 'success' }])
    expect(types('a')).toEqual(['1 accepted', '2 started', '3 kill_requested'])
    expect(types('b')).toEqual(['1 accepted', '2 started', '3 finished'])
  })

  test('that nobody waits for does not come back after the end', async () => {
    const task = await accept('a')
    store.note(task, { patch: { status: 'running' }, events: [] })
    await end(task)
    commit.flush()
    expect(store.get('a')?.status).toBe('success')
  })

  test('is in the events that are read next, before it is durable', async () => {
    const task = await accept('a')
    store.note(task, { patch: {}, events: [{ event_type: 'started', message: 'started', data: { pid: 7 } }] })
    expect(store.events('a').at(-1)).toMatchObject({ event_type: 'started', data: { pid: 7 } })
  })

  test('of a recovered task goes on with the number of its events', async () => {
    await accept('a')
    restart()
    await store.change(store.liveTask('a')!, { patch: {}, events: [{ event_type: 'recovered', message: 'back' }] })
    expect(types('a')).toEqual(['1 accepted', '2 recovered'])
  })
})

describe('an end', () => {
  test('is seen when it is durable, then wakes those that wait for it', async () => {
    const task = await accept('a')
    const ending = end(task, { exit_code: 3 })
    expect(store.get('a')?.status).toBe('accepted')
    await ending
    expect(await task.ended).toMatchObject({ status: 'success', exit_code: 3, finished_at: 5_000 })
    expect(store.liveTask('a')).toBeUndefined()
    restart()
    expect(store.get('a')).toMatchObject({ status: 'success', exit_code: 3 })
    expect([...store.live]).toEqual([])
    expect(() => store.requestOf('a')).toThrow()
  })

  test('is told before anybody sees it, first while it is being written', async () => {
    const task = await accept('a')
    const seen: string[] = []
    const look = (when: string) => (last: TaskRow) =>
      seen.push(`${when}: ${last.status}, seen ${store.get('a')?.status}`)
    const hooks = { meanwhile: look('meanwhile'), beforeSeen: look('before') }
    const ended = store.end(task, { patch: { status: 'failed' }, events: [] }, hooks)
    expect(seen).toEqual([])
    await ended
    expect(seen).toEqual(['meanwhile: failed, seen accepted', 'before: failed, seen accepted'])
    expect(store.get('a')).toMatchObject({ status: 'failed' })
  })

  test('keeps its reservation, and when that was released', async () => {
    const task = await accept('a', { tenant: 't', reserved_at: 1 })
    await end(task, { finished_at: 9, released_at: 9 })
    restart()
    expect(store.get('a')).toMatchObject({ reservation: '{"task_slots":1,"pids":4}', reserved_at: 1, released_at: 9 })
  })
})

describe('a list', () => {
  beforeEach(async () => {
    await Promise.all([accept('a', { tenant: 't' }), accept('b'), accept('c', { tenant: 't' }), accept('d')])
    await end(store.liveTask('c')!)
  })
  const ids = (filter: Partial<Parameters<TaskStore['list']>[0]>) =>
    store.list({ status: null, tenant: null, afterOrdinal: 0, limit: 10, ...filter }).map(({ task_id }) => task_id)

  test('is in the order of acceptance, in pages', () => {
    expect(ids({})).toEqual(['a', 'b', 'c', 'd'])
    expect(ids({ limit: 2 })).toEqual(['a', 'b'])
    expect(ids({ limit: 2, afterOrdinal: store.get('b')!.ordinal })).toEqual(['c', 'd'])
  })

  test('can be of a status, of a tenant, of both', () => {
    expect(ids({ status: 'accepted' })).toEqual(['a', 'b', 'd'])
    expect(ids({ tenant: 't' })).toEqual(['a', 'c'])
    expect(ids({ tenant: 't', status: 'success' })).toEqual(['c'])
  })
})

test('what is kept no longer is the oldest that ended, and goes without a trace', async () => {
  for (const id of ['a', 'b', 'c']) await accept(id)
  await end(store.liveTask('b')!, { finished_at: 100 })
  await end(store.liveTask('a')!, { finished_at: 200 })
  const idsBefore = (ms: number) => store.endedBefore(ms, 10)
  expect(idsBefore(300)).toEqual(['b', 'a'])
  expect(idsBefore(150)).toEqual(['b'])
  await store.remove(['b'])
  expect(store.has('b')).toBe(false)
  expect(store.events('b')).toEqual([])
  expect(store.has('c')).toBe(true)
})

test('numbers of acceptance never repeat, across a restart too', async () => {
  await accept('a')
  restart()
  await accept('b')
  expect(store.get('b')!.ordinal).toBeGreaterThan(store.get('a')!.ordinal)
})

describe('a change that a caller is promised', () => {
  const KILL = { patch: { kill_requested_at: 7_000 }, events: [{ event_type: 'kill_requested', message: 'kill' }] }

  test('is not seen before it is durable, and not lost by a change that comes meanwhile', async () => {
    const task = await accept('a')
    const promised = store.promise(task, KILL)
    expect(task.row.kill_requested_at).toBe(null)
    const changed = store.change(task, { patch: { pid: 7 }, events: [{ event_type: 'started', message: 'started' }] })
    await Promise.all([promised, changed])
    expect(task.row).toMatchObject({ kill_requested_at: 7_000, pid: 7 })
    restart()
    expect(store.liveTask('a')!.row).toMatchObject({ kill_requested_at: 7_000, pid: 7 })
    expect(
      types('a')
        .map((text) => text.split(' ')[1])
        .toSorted(),
    ).toEqual(['accepted', 'kill_requested', 'started'])
  })

  test('that cannot be written is refused, and nothing of it is left', async () => {
    const task = await accept('a')
    db.run('pragma query_only = on')
    await expect(store.promise(task, KILL)).rejects.toMatchObject({ status: 503 })
    db.run('pragma query_only = off')
    await store.change(task, { patch: { pid: 7 }, events: [] })
    restart()
    expect(store.liveTask('a')!.row).toMatchObject({ kill_requested_at: null, pid: 7 })
    expect(types('a')).toEqual(['1 accepted'])
  })

  test('leaves a task alone that ends meanwhile', async () => {
    const task = await accept('a')
    const promised = store.promise(task, KILL)
    const ended = end(task)
    await Promise.all([promised, ended])
    restart()
    expect(store.get('a')).toMatchObject({ status: 'success', kill_requested_at: null })
    expect(types('a')).toEqual(['1 accepted', '2 finished'])
  })
})
