/** Tasks that take over an earlier outcome by a key. Source: docs/graphs.md, "Outcomes by key". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_CACHE_KEY_CHARACTERS, MAX_CACHE_TTL_MS } from '../../shared/contract/cache.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { RerunResponse } from '../../shared/contract/rerun.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { startPair } from '../support/pair.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

/** Tests that share the service have keys of their own. */
const cached = (id: string, key: string, more: object = {}) => ({
  ...{ id, type: 'noop', params: { message: id } },
  ...{ cache: { key }, ...more },
})

/** Runs one task to its end. */
const ran = async (control: Control, task: { readonly id: string; readonly [field: string]: unknown }) => {
  await control.submit([task])
  return control.ended(task.id)
}

const messageOf = ({ result }: TaskRecord) => (result as { message: string }).message

const lookups = async (control: Control, outcome: 'hit' | 'miss'): Promise<number> => {
  const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
  return Number(new RegExp(`service_control_cache_lookups_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1])
}

describe('a task with the key of an earlier success', () => {
  test('takes over its outcome, and says from where', async () => {
    const before = [await lookups(control, 'hit'), await lookups(control, 'miss')]
    await using stream = await EventStreamClient.open(`${control.url}/events`)
    const first = await ran(control, cached('first', 'k'))
    expect(first.reused_from).toBeUndefined()
    await control.submit([cached('second', 'k', { retry: 2 }), { id: 'next', type: 'noop', depends_on: ['second'] }])
    const second = await control.ended('second')
    expect(second).toMatchObject({
      ...{ status: 'success', attempt: 1, result: first.result, cache: { key: 'k' } },
      reused_from: { graph_id: first.graph_id, task_id: 'first' },
    })
    expect(Date.parse(second.started_at!)).toBeGreaterThanOrEqual(Date.parse(first.finished_at!))
    expect((await control.ended('next')).status).toBe('success')
    // What was taken over is traced to the task that was executed.
    const third = await ran(control, cached('third', 'k'))
    expect(third.reused_from).toEqual({ graph_id: first.graph_id, task_id: 'first' })
    await stream.once((events) =>
      events.some((event) => event.event === 'task_changed' && event.task_id === 'third' && 'reused_from' in event),
    )
    expect([await lookups(control, 'hit'), await lookups(control, 'miss')]).toEqual([before[0]! + 2, before[1]! + 1])
  })

  test('is executed if that has another type, tool or key, failed, or is too old', async () => {
    await ran(control, cached('first', 'kind'))
    const read = { type: 'file', params: { action: 'read', path: '/no/such/file' } }
    await ran(control, { id: 'failed', ...read, cache: { key: 'f' } })
    for (const [id, more, key] of [
      ['other-key', {}, 'KIND'],
      ['other-tool', { type: 'sleep', params: {} }, 'kind'],
      ['other-type', { type: 'cli-skills', params: { command: 'echo' } }, 'kind'],
      ['after-failure', {}, 'f'],
      ['too-old', { cache: { key: 'kind', ttl_ms: 0 } }, 'kind'],
    ] as const) {
      const task = await ran(control, cached(id, key, more))
      expect([id, task.status, task.reused_from]).toEqual([id, 'success', undefined])
    }
    // The long form is the same tool; and the last one has renewed the outcome.
    const long = await ran(control, cached('long', 'kind', { type: 'os', tool_name: 'noop' }))
    expect([messageOf(long), long.reused_from?.task_id]).toEqual(['too-old', 'too-old'])
    const short = { key: 'kind', ttl_ms: 1 }
    await until(
      () => Date.now(),
      (now) => now > Date.parse(long.finished_at!) + 2,
    )
    expect((await ran(control, cached('late', 'kind', { cache: short }))).reused_from).toBeUndefined()
  })

  test('is executed once the record is gone', async () => {
    await ran(control, cached('first', 'gone'))
    expect((await control.fetch('/tasks/first', { method: 'DELETE' })).status).toBe(204)
    const second = await ran(control, cached('second', 'gone'))
    expect(second.reused_from).toBeUndefined()
    expect((await control.fetch(`/graphs/${second.graph_id}`, { method: 'DELETE' })).status).toBe(204)
    expect((await ran(control, cached('third', 'gone'))).reused_from).toBeUndefined()
  })

  test('does not wait for one that still runs', async () => {
    using gate = new Gate()
    const tasks = ['a', 'b'].map((id) => ({ ...gate.task(id), cache: { key: 'beside' } }))
    await control.submit(tasks)
    await until(() => gate.arrivals, 2)
    gate.open()
    for (const id of ['a', 'b']) expect((await control.ended(id)).reused_from).toBeUndefined()
  })

  test('shares a large result, which stays when the source goes', async () => {
    await using control = await startControl({ flags: ['--persist-interval', '20ms'] })
    const message = 'x'.repeat(100_000)
    const first = await ran(control, cached('first', 'k', { params: { message } }))
    const second = await ran(control, cached('second', 'k'))
    expect([messageOf(second), second.reused_from?.task_id]).toEqual([message, 'first'])
    expect((await control.fetch(`/graphs/${first.graph_id}`, { method: 'DELETE' })).status).toBe(204)
    // After the next state file, files that no task refers to are gone.
    await ran(control, { id: 'other', ...{ type: 'noop' } })
    const stateFile = join(control.dataDir, 'state.json')
    await until(
      () => (existsSync(stateFile) ? readFileSync(stateFile, 'utf8') : ''),
      (text) => text.includes('"other"') && !text.includes('"first": {'),
    )
    expect(messageOf(await control.get('second'))).toBe(message)
  })

  test('shares a result of some kilobytes, on disk too, however many tasks take it over', async () => {
    using dir = tempDir()
    const options = { dataDir: join(dir.path, 'data') }
    const message = 'x'.repeat(20_000)
    const count = 2_000
    {
      await using control = await startControl(options)
      await ran(control, cached('first', 'k', { params: { message } }))
      await control.submit(Array.from({ length: count }, (_, i) => cached(`taker-${i}`, 'k')))
      expect(messageOf(await control.ended(`taker-${count - 1}`))).toBe(message)
      await control.stop('SIGTERM')
    }
    const files = readdirSync(options.dataDir, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
    expect(bytes).toBeLessThan((count * message.length) / 4)
    await using control = await startControl(options)
    for (const id of ['first', 'taker-0', `taker-${count - 1}`]) expect(messageOf(await control.get(id))).toBe(message)
    expect((await control.fetch('/tasks/first', { method: 'DELETE' })).status).toBe(204)
    expect(messageOf(await control.get('taker-1'))).toBe(message)
  })

  test('has a key that is checked at submission', async () => {
    const expected = `expected object of key (string of 1 to ${MAX_CACHE_KEY_CHARACTERS} characters) and ttl_ms (integer from 0 to ${MAX_CACHE_TTL_MS})`
    for (const cache of [
      'k',
      {},
      { key: '' },
      { key: 7 },
      { key: { $param: 'x' } },
      { key: 'x'.repeat(MAX_CACHE_KEY_CHARACTERS + 1) },
      { key: 'k', ttl_ms: -1 },
      { key: 'k', ttl_ms: MAX_CACHE_TTL_MS + 1 },
    ]) {
      const response = await control.post({ tasks: [{ id: 'a', type: 'noop', cache }] })
      expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([
        400,
        expect.stringContaining(expected),
      ])
    }
    const misspelt = await control.post({ tasks: [{ id: 'a', type: 'noop', cache: { key: 'k', ttl: 1 } }] })
    expect([misspelt.status, await misspelt.json()]).toEqual([
      400,
      { error: 'invalid JSON: tasks[0].cache: unknown field "ttl" (did you mean "ttl_ms"?)' },
    ])
    const approval = await control.post({ tasks: [{ id: 'a', type: 'approval', cache: { key: 'k' } }] })
    expect([approval.status, await approval.json()]).toEqual([
      400,
      { error: 'task a: cache is not for approvals: somebody has to give each of them' },
    ])
    const fanOut = await control.post({ tasks: [{ id: 'a', type: 'noop', for_each: [1, 2], cache: { key: 'k' } }] })
    expect([fanOut.status, await fanOut.json()]).toEqual([
      400,
      { error: 'task a: for_each and cache exclude each other: all children would have the same key' },
    ])
    const none = await ran(control, cached('none', '', { cache: null }))
    expect(none.cache).toBeUndefined()
    for (const key of ['__proto__', '\u0000"]', 'x'.repeat(MAX_CACHE_KEY_CHARACTERS)]) {
      await ran(control, cached('one', key))
      expect((await ran(control, cached('two', key, { cache: { key, ttl_ms: null } }))).reused_from?.task_id).toBe(
        'one',
      )
    }
  })
})

describe('outcomes', () => {
  test.each([
    ['journal', '1h'],
    ['state file', '20ms'],
  ])('survive a kill: %s', async (source, interval) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const options = { dataDir, flags: ['--persist-interval', interval] }
    const stateFile = join(dataDir, 'state.json')
    let first: TaskRecord
    {
      await using control = await startControl(options)
      first = await ran(control, cached('first', 'k'))
      await ran(control, cached('second', 'k'))
      await ran(control, cached('gone', 'deleted'))
      expect((await control.fetch('/tasks/gone', { method: 'DELETE' })).status).toBe(204)
      if (source === 'state file') {
        await until(
          () => existsSync(stateFile) && readFileSync(stateFile, 'utf8'),
          (text) => text !== false && text.includes('"second"') && !text.includes('"gone"'),
        )
      }
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    await using control = await startControl(options)
    const reused_from = { graph_id: first.graph_id, task_id: 'first' }
    expect(await control.get('second')).toMatchObject({ result: first.result, reused_from })
    expect(await ran(control, cached('third', 'k'))).toMatchObject({ result: first.result, reused_from })
    expect((await ran(control, cached('again', 'deleted'))).reused_from).toBeUndefined()
  })

  test('are bounded, and the oldest go first', async () => {
    await using control = await startControl({ flags: ['--max-cached-outcomes', '2'] })
    for (const id of ['a', 'b', 'c']) await ran(control, cached(id, id))
    const reused = async (id: string, key: string) => (await ran(control, cached(id, key))).reused_from?.task_id
    expect([await reused('b2', 'b'), await reused('c2', 'c'), await reused('a2', 'a')]).toEqual(['b', 'c', undefined])
    await using without = await startControl({ flags: ['--max-cached-outcomes', '0'] })
    await ran(without, cached('a', 'k'))
    expect((await ran(without, cached('b', 'k'))).reused_from).toBeUndefined()
  })

  test('do not keep a rerun from executing what it was told to', async () => {
    const { graph_id } = await control.submit([
      cached('build', 'build'),
      cached('test', 'test', { depends_on: ['build'] }),
      cached('other', 'other'),
    ])
    for (const id of ['test', 'other']) await control.ended(id)
    const rerun = await control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST', body: '{"from": ["build"]}' })
    expect(rerun.status).toBe(202)
    expect(((await rerun.json()) as RerunResponse).reused).toEqual(['other'])
    for (const id of ['build', 'test']) {
      const task = await control.ended(id)
      expect([task.reused_from, task.cache]).toEqual([undefined, { key: id, ttl_ms: 0 }])
    }
    const fresh = await control.get('build')
    expect((await ran(control, cached('more', 'build'))).reused_from).toEqual({
      graph_id: fresh.graph_id,
      task_id: 'build',
    })
  })
})

describe('outcomes of runtime tasks', () => {
  test('do not cross tenants', async () => {
    await using pair = await startPair({ controlEnv: { SERVICE_RUNTIME_TENANT: 'B' } })
    const { control } = pair
    const task = (id: string, params: object) => ({
      ...{ id, type: 'runtime.script', cache: { key: 'k' } },
      params: { script: `echo ${id}`, ...params },
    })
    const a = await ran(control, task('a', { control_context: { tenant: 'A' } }))
    const b = await ran(control, task('b', {}))
    const c = await ran(control, task('c', { control_context: { tenant: 'B' } }))
    expect([a, b, c].map(({ status, reused_from }) => [status, reused_from?.task_id])).toEqual([
      ['success', undefined],
      ['success', undefined],
      ['success', 'b'],
    ])
    expect(b.result).toMatchObject({ stdout: 'b\n' })
  })

  test('are forgotten once their files are gone', async () => {
    await using pair = await startPair()
    const { control, runtime } = pair
    const run = async () => {
      await control.submit([
        { id: 'build', type: 'runtime.script', params: { script: 'echo 1 > made' }, cache: { key: 'k' } },
        {
          ...{ id: 'use', type: 'runtime.script', depends_on: ['build'] },
          params: { script: 'cat in', inputs: { in: { $from: 'build', file: 'made' } } },
        },
      ])
      return { build: await control.ended('build'), use: await control.ended('use') }
    }
    const first = await run()
    expect(first.use.status).toBe('success')
    const path = `/api/v1/tasks/${first.build.handle_id}`
    expect((await runtime.fetch(path, { method: 'DELETE' })).status).toBe(204)
    const second = await run()
    expect([second.build.reused_from?.graph_id, second.use.status]).toEqual([first.build.graph_id, 'failed'])
    const third = await run()
    expect([third.build.reused_from, third.use.status]).toEqual([undefined, 'success'])
    expect((await run()).build.reused_from?.graph_id).toBe(third.build.graph_id)
  })
})
