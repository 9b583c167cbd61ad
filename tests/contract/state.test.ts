/** The state file, the end of the service and its next start. Source: spec, A and Limits A; contract, State file. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let temp: TempDir
let dataDir: string
let stateFile: string
let gate: Gate
beforeEach(() => {
  temp = tempDir()
  dataDir = join(temp.path, 'data')
  stateFile = join(dataDir, 'state.json')
  gate = new Gate()
})
afterEach(() => {
  gate[Symbol.dispose]()
  temp[Symbol.dispose]()
})

type State = Record<string, TaskRecord>
const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const failing = (id: string, more: object = {}) => ({ id, type: 'os', tool_name: 'no-such-tool', ...more })
const state = () => JSON.parse(readFileSync(stateFile, 'utf8')) as State
const start = (...flags: string[]) => startControl({ dataDir, flags, env: { SERVICE_SHELL_POLICY: 'open' } })
/** Ends what runs instead of waiting for it. */
const AT_ONCE = ['--shutdown-timeout', '0s'] as const
const OFTEN = ['--persist-interval', '20ms'] as const

/** Resolves when `count` requests have come to the gate: that many attempts execute. */
const arrived = (count: number) => until(() => gate.arrivals, count)

describe('writing', () => {
  test('happens at the interval: one JSON object, task id to task record', async () => {
    await using control = await start(...OFTEN)
    await control.submit([noop('a/b'), failing('bad'), noop('leaf', 'bad'), gate.task('busy')])
    await control.ended('leaf')
    await control.ended('a/b')
    const busy = await control.reached('busy', 'running')
    const written = await until(
      () => (existsSync(stateFile) ? state() : {}),
      (seen) => seen.busy?.status === 'running' && seen.leaf?.status === 'skipped',
    )
    expect(Object.keys(written)).toEqual(['a/b', 'bad', 'leaf', 'busy'])
    expect(statSync(stateFile).mode & 0o777).toBe(0o600)
    expect(written.busy).toMatchObject(busy)
    for (const id of ['a/b', 'bad', 'leaf']) expect(written[id]).toMatchObject(await control.get(id))
  })

  test('happens on graceful shutdown', async () => {
    await using control = await start()
    await control.submit([noop('one'), noop('two', 'one')])
    const before = await control.allEnded()
    expect(await control.stop()).toBe(0)
    expect(Object.values(state())).toMatchObject(before)
  })

  test('a deletion gets into the file, too', async () => {
    await using control = await start(...OFTEN)
    await control.submit([noop('gone'), noop('kept')])
    await control.allEnded()
    expect((await control.fetch('/tasks/gone', { method: 'DELETE' })).status).toBe(204)
    await until(
      () => (existsSync(stateFile) ? Object.keys(state()) : []),
      (ids) => ids.join() === 'kept',
    )
  })

  test('is atomic: a reader never sees broken JSON, and no file is left aside', async () => {
    await using control = await start('--persist-interval', '10ms')
    const message = 'x'.repeat(2000)
    await control.submit(
      Array.from({ length: 500 }, (_, i) => ({ id: `task-${i}`, type: 'noop', params: { message } })),
    )
    const versions = new Set<bigint>()
    while (versions.size < 12) {
      await control.submit([noop('changing')])
      await control.ended('changing')
      if (!existsSync(stateFile)) continue
      expect(Object.keys(state()).length).toBeGreaterThanOrEqual(500)
      versions.add(statSync(stateFile, { bigint: true }).mtimeNs)
    }
    expect(await control.stop()).toBe(0)
    expect(readdirSync(dataDir).filter((name) => /state/.test(name))).toEqual(['state.json'])
  })
})

describe('the next start', () => {
  test('terminal tasks stay as they are, in their order', async () => {
    await using before = await start()
    await before.submit([
      noop('10'),
      { id: '9', type: 'noop', params: { message: 'ü € 😀' }, retry: 1, timeout: 1000 },
      failing('__proto__', { retry: 1 }),
      noop('a/b %', '__proto__'),
    ])
    await before.submit([{ id: 'shell', type: 'shell', params: { command: 'echo', args: ['kept'] } }])
    const tasks = await before.allEnded()
    expect(tasks.map((task) => task.status)).toEqual(['success', 'success', 'failed', 'skipped', 'success'])
    expect(await before.stop()).toBe(0)

    await using after = await start()
    expect(await after.list()).toEqual(tasks)
    expect(await after.get('a/b %')).toEqual(tasks[3]!)
    expect(await after.stop()).toBe(0)

    await using third = await start()
    expect(await third.list()).toEqual(tasks)
  })

  test('pending tasks are scheduled again', async () => {
    await using before = await start(...AT_ONCE, '--max-concurrency', '1')
    await before.submit([gate.task('busy'), noop('after', 'busy'), noop('ready'), noop('last', 'after', 'ready')])
    await before.reached('busy', 'running')
    expect(await before.stop()).toBe(0)
    expect(Object.values(state()).map((task) => task.status)).toEqual(['pending', 'pending', 'pending', 'pending'])

    gate.open()
    await using after = await start()
    const tasks = await after.allEnded()
    expect(tasks.map((task) => [task.id, task.status])).toEqual(
      ['busy', 'after', 'ready', 'last'].map((id) => [id, 'success']),
    )
  })

  test('after a crash, running tasks are pending and run again with the next attempt number', async () => {
    await using before = await start(...OFTEN)
    await before.submit([gate.task('busy'), noop('after', 'busy')])
    await before.reached('busy', 'running')
    await until(() => (existsSync(stateFile) ? state().busy?.status : undefined), 'running')
    await arrived(1)
    expect(await before.stop('SIGKILL')).toBe('SIGKILL')

    await using after = await start()
    await arrived(2)
    expect(await after.get('busy')).toMatchObject({ status: 'running', attempt: 2 })
    gate.open()
    expect(await after.ended('after')).toMatchObject({ status: 'success' })
    expect(await after.get('busy')).toMatchObject({ status: 'success', attempt: 2 })
  })

  test('ids of recovered tasks are in use, or may be used again, as before', async () => {
    await using before = await start(...AT_ONCE)
    await before.submit([noop('done'), gate.task('open')])
    await before.ended('done')
    await before.reached('open', 'running')
    expect(await before.stop()).toBe(0)

    await using after = await start()
    expect((await after.post({ tasks: [noop('open')] })).status).toBe(409)
    expect((await after.post({ tasks: [noop('done')] })).status).toBe(202)
    gate.open()
    expect((await after.ended('open')).status).toBe('success')
  })

  test('log lines of recovered tasks carry the trace id they came with', async () => {
    await using before = await start(...AT_ONCE)
    await before.submit([gate.task('open')], { 'x-trace-id': 'over-the-restart' })
    await before.reached('open', 'running')
    expect(await before.stop()).toBe(0)

    gate.open()
    await using after = await start()
    const line = await until(() => after.log.find(({ msg }) => msg === 'graph ended'))
    expect(line).toMatchObject({ trace_id: 'over-the-restart' })
  })
})

describe('SIGTERM', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('exit code 0 where nothing runs: %s', async (signal) => {
    await using control = await start()
    await control.run({ type: 'noop' })
    expect(await control.stop(signal)).toBe(0)
  })

  test('running attempts may finish within --shutdown-timeout; nothing new starts', async () => {
    await using before = await start('--shutdown-timeout', '30s')
    await before.submit([gate.task('busy'), noop('after', 'busy')])
    await arrived(1)
    const stopped = before.stop()
    await until(() => before.log.some(({ msg }) => msg === 'stopping'))
    gate.open()
    expect(await stopped).toBe(0)
    expect(state()).toMatchObject({ busy: { status: 'success', attempt: 1 }, after: { status: 'pending' } })

    await using after = await start()
    expect((await after.ended('after')).status).toBe('success')
    expect(await after.get('busy')).toMatchObject({ status: 'success', attempt: 1 })
    expect(gate.arrivals).toBe(1)
  })

  test('while attempts finish, tasks can be read and graphs are refused (503), and nothing of them is stored', async () => {
    await using control = await start('--shutdown-timeout', '30s')
    await control.submit([gate.task('busy')])
    await arrived(1)
    const stopped = control.stop()
    const refused = await until(
      () => control.post({ tasks: [noop(crypto.randomUUID())] }),
      (response) => response.status !== 202,
    )
    expect(refused.status).toBe(503)
    expect(await refused.json()).toEqual({ error: expect.any(String) })
    expect((await control.post({ tasks: [noop('late')] })).status).toBe(503)
    expect((await control.get('busy')).status).toBe('running')
    expect((await control.fetch('/tasks/late')).status).toBe(404)
    gate.open()
    expect(await stopped).toBe(0)
    expect(state()).not.toHaveProperty('late')
  })

  test('what had to be ended is pending and runs again with the next attempt number and no retry used', async () => {
    await using before = await start('--shutdown-timeout', '50ms')
    await before.submit([gate.task('busy', { retry: 1 })])
    await arrived(1)
    expect(await before.stop()).toBe(0)
    expect(state().busy).toMatchObject({ status: 'pending', run_status: 'accepted', attempt: 1 })
    for (const field of ['finished_at', 'result', 'error']) expect(state().busy).not.toHaveProperty(field)

    gate.open(500)
    await using after = await start()
    // Both attempts that retry 1 allows are still there: the second and the third.
    expect(await after.ended('busy')).toMatchObject({
      status: 'failed',
      attempt: 3,
      error: 'task failed after all retries: http status 500',
    })
    expect(gate.arrivals).toBe(3)
  })

  test('a task in backoff is pending, and its used attempts stay used', async () => {
    gate.open(500)
    await using before = await start(...AT_ONCE)
    // The last pause, in which the test stops the service, is 2 s.
    await before.submit([gate.task('shaky', { retry: 3, backoff: { initial_ms: 20, factor: 10 } })])
    await until(
      () => before.get('shaky'),
      (task) => task.run_status === 'accepted' && task.attempt === 3,
    )
    expect(await before.stop()).toBe(0)

    await using after = await start()
    expect(await after.ended('shaky')).toMatchObject({ status: 'failed', attempt: 4 })
    expect(gate.arrivals).toBe(4)
  })

  test('processes of shell tasks that are ended run again from their beginning', async () => {
    const script = 'echo run >> runs; test $(wc -l < runs) -ge 2 || exec sleep 600'
    const runs = () => (existsSync(join(temp.path, 'runs')) ? readFileSync(join(temp.path, 'runs'), 'utf8') : '')
    await using before = await start(...AT_ONCE)
    await before.submit([{ id: 'script', type: 'shell', params: { script, dir: temp.path } }])
    await until(runs, (text) => text === 'run\n')
    expect(await before.stop()).toBe(0)
    expect(state().script).toMatchObject({ status: 'pending', attempt: 1 })

    await using after = await start()
    expect(await after.ended('script')).toMatchObject({ status: 'success', attempt: 2 })
    expect(runs()).toBe('run\nrun\n')
  })
})

describe('a state file that cannot be read', () => {
  const task = { id: 'a', type: 'noop', status: 'success' }

  test.each([
    ['{"a": {"id": "a", "type": "noop", "sta', 'cut off'],
    [JSON.stringify({ a: { ...task, status: 'finished' } }), 'an unknown status'],
  ])('stops the start with a clear error and is left as it is: %s (%s)', async (content) => {
    mkdirSync(dataDir)
    writeFileSync(stateFile, content)
    const child = Bun.spawn(
      [await binary('taskmill-control'), '--addr', '127.0.0.1:0', '--data-dir', dataDir, ...OFTEN],
      { cwd: temp.path, env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    )
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect(await child.exited).toBe(2)
    expect(stderr).toMatch(/^[^\n]+\n$/)
    expect(stderr).toContain(stateFile)
    expect(stdout).not.toContain('listening')
    expect(readFileSync(stateFile, 'utf8')).toBe(content)
  })
})

describe('a state file of the older form', () => {
  test('loads without times: who knows when it ended keeps it as if that was now', async () => {
    mkdirSync(dataDir)
    const entry = { id: 'done', type: 'noop', params: { message: 'hi' }, status: 'success' }
    writeFileSync(stateFile, JSON.stringify({ done: entry }))
    await using control = await start()
    expect(await control.get('done')).toMatchObject({ status: 'success' })
    await control.run({ id: 'next', type: 'noop', params: { message: 'more' } })
    expect(await control.get('done')).toMatchObject({ status: 'success' })
  })

  test('loads: terminal tasks stay, the others run', async () => {
    const times = { created_at: '2024-05-01T10:00:00.123456789+02:00', updated_at: '2024-05-01T10:00:01.5+02:00' }
    const common = { retry: 0, timeout: 0, depends_on: null, result: null, error: '', ...times }
    mkdirSync(dataDir)
    writeFileSync(
      stateFile,
      JSON.stringify({
        done: {
          ...common,
          ...{ id: 'done', type: 'shell', params: { command: 'echo', args: ['hi'] }, status: 'success' },
          result: { stdout: 'hi\n', stderr: '', exit_code: 0 },
        },
        broken: {
          ...common,
          ...{ id: 'broken', type: 'http', params: { url: 'http://127.0.0.1:9/' }, status: 'failed' },
          ...{ error: 'task failed after all retries', retry: 3 },
        },
        skipped: { ...common, id: 'skipped', type: 'noop', depends_on: ['broken'], status: 'skipped' },
        started: { ...common, id: 'started', type: 'noop', params: { message: 'again' }, status: 'running' },
        waiting: { ...common, id: 'waiting', type: 'noop', depends_on: ['started', 'done'], status: 'pending' },
        hopeless: { ...common, id: 'hopeless', type: 'noop', depends_on: ['skipped'], status: 'pending' },
      }),
    )
    await using control = await start()
    const tasks = await control.allEnded()
    expect(tasks.map((task) => task.id)).toEqual(['done', 'broken', 'skipped', 'started', 'waiting', 'hopeless'])
    expect(await control.get('done')).toMatchObject({
      status: 'success',
      type: 'os',
      tool_name: 'shell',
      params: { command: 'echo', args: ['hi'] },
      result: { stdout: 'hi\n', exit_code: 0 },
    })
    expect(Date.parse((await control.get('done')).created_at)).toBe(Date.parse('2024-05-01T08:00:00.123Z'))
    expect(await control.get('broken')).toMatchObject({
      status: 'failed',
      tool_name: 'http',
      error: 'task failed after all retries',
      retry: 3,
    })
    expect((await control.get('skipped')).status).toBe('skipped')
    expect(await control.get('started')).toMatchObject({ status: 'success', result: { message: 'again' } })
    expect((await control.get('waiting')).status).toBe('success')
    expect(await control.get('hopeless')).toMatchObject({ status: 'skipped', error: 'dependency skipped skipped' })
  })

  test('loads where its tasks have nothing but what must be there', async () => {
    mkdirSync(dataDir)
    writeFileSync(stateFile, '{"a": {"id": "a", "type": "noop", "status": "pending"}}')
    await using control = await start()
    expect(await control.ended('a')).toMatchObject({ id: 'a', status: 'success' })
  })

  test('cancelling becomes cancelled, and what depends on it is skipped', async () => {
    mkdirSync(dataDir)
    writeFileSync(
      stateFile,
      JSON.stringify({
        stopping: { id: 'stopping', type: 'noop', status: 'cancelling' },
        after: { id: 'after', type: 'noop', status: 'pending', depends_on: ['stopping'] },
      }),
    )
    await using control = await start()
    expect(await control.ended('after')).toMatchObject({ status: 'skipped', error: 'dependency stopping cancelled' })
    expect((await control.get('stopping')).status).toBe('cancelled')
  })
})
