/** The task record of GET /tasks/{id} and GET /tasks. Source: spec, Resources A; contract, Task record. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { MAX_TASK_ID_BYTES } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(() => control.dispose())

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
const failing = (id: string, more: object = {}) => ({ id, type: 'os', tool_name: 'no-such-tool', ...more })

describe('fields of a task', () => {
  test('that succeeded', async () => {
    const { graph_id } = await control.submit([
      {
        id: 'good',
        type: 'os',
        tool_name: 'noop',
        input: { message: 'hi' },
        timeout: 5000,
        queue_timeout: 6000,
        retry: 2,
      },
    ])
    const task = await control.ended('good')
    expect(task).toMatchObject({
      id: 'good',
      type: 'os',
      tool_name: 'noop',
      execution_category: 'os',
      input: { message: 'hi' },
      retry: 2,
      timeout: 5000,
      queue_timeout: 6000,
      graph_id,
      status: 'success',
      run_status: 'success',
      attempt: 1,
      result: { ok: true, message: 'hi' },
      runtime: { status: 'success', attempt: 1, duration_ms: expect.any(Number) },
    })
    for (const absent of ['error', 'depends_on', 'annotations', 'handle_id', 'progress']) {
      expect(task).not.toHaveProperty(absent)
    }
    expect(task.runtime).not.toHaveProperty('error')
  })

  test('that failed: error has the cause, runtime.error its code', async () => {
    await control.submit([failing('bad')])
    const task = await control.ended('bad')
    expect(task).toMatchObject({
      status: 'failed',
      run_status: 'failed',
      attempt: 1,
      error: expect.stringContaining('unknown os tool'),
      runtime: { status: 'failed', attempt: 1, error: { code: 'invalid_input', message: task.error! } },
    })
    expect(task).not.toHaveProperty('result')
  })

  test('that was skipped: runtime and run_status do not exist, as it never started', async () => {
    await control.submit([failing('root'), { id: 'leaf', type: 'noop', depends_on: ['root'] }])
    const task = await control.ended('leaf')
    expect(task).toMatchObject({ status: 'skipped', error: 'dependency root failed', depends_on: ['root'] })
    for (const absent of ['runtime', 'run_status', 'attempt', 'started_at', 'result']) {
      expect(task).not.toHaveProperty(absent)
    }
  })

  test('that is running, and of one that waits for it', async () => {
    using gate = new Gate()
    await control.submit([gate.task('busy'), { id: 'idle', type: 'noop', depends_on: ['busy'] }])
    const busy = await control.reached('busy', 'running')
    expect(busy).toMatchObject({ run_status: 'running', attempt: 1, runtime: { status: 'running', attempt: 1 } })
    expect(busy.started_at).toMatch(RFC_3339)
    for (const absent of ['finished_at', 'result', 'error']) expect(busy).not.toHaveProperty(absent)
    const idle = await control.get('idle')
    expect(idle.status).toBe('pending')
    for (const absent of ['runtime', 'run_status', 'attempt', 'started_at', 'finished_at', 'result', 'error']) {
      expect(idle).not.toHaveProperty(absent)
    }
    gate.open()
    expect((await control.ended('idle')).status).toBe('success')
  })

  test('during backoff: the status stays running, run_status is accepted', async () => {
    await control.submit([failing('resting', { retry: 9 })])
    const task = await until(
      () => control.get('resting'),
      (seen) => seen.run_status === 'accepted',
    )
    expect(task.status).toBe('running')
    expect(task.attempt).toBeGreaterThanOrEqual(1)
    expect(task.runtime).toMatchObject({ status: 'accepted', error: { code: 'invalid_input' } })
    expect(task).not.toHaveProperty('error')
    expect((await control.fetch('/tasks/resting', { method: 'DELETE' })).status).toBe(204)
  })

  test('are left out where absent, never null', async () => {
    using gate = new Gate()
    await control.submit([gate.task('r'), { id: 'p', type: 'noop', depends_on: ['r'] }])
    await control.reached('r', 'running')
    await control.submit([failing('f'), { id: 's', type: 'noop', depends_on: ['f'] }, { id: 'ok', type: 'noop' }])
    await control.ended('s')
    for (const task of await control.list()) {
      const { result: _result, params: _params, input: _input, ...ours } = task
      expect(JSON.stringify(ours)).not.toContain('null')
    }
    gate.open()
    await control.ended('p')
  })

  test('timestamps are RFC 3339 and in order', async () => {
    const before = Date.now()
    await control.submit([{ id: 'timed', type: 'sleep', params: { duration_ms: 20 } }])
    const task = await control.ended('timed')
    const { created_at, started_at, finished_at, updated_at } = task
    for (const time of [created_at, started_at, finished_at, updated_at]) expect(time).toMatch(RFC_3339)
    const [created, started, finished, updated] = [created_at, started_at!, finished_at!, updated_at].map(Date.parse)
    expect(created!).toBeGreaterThanOrEqual(before)
    expect(started!).toBeGreaterThanOrEqual(created!)
    expect(finished!).toBeGreaterThanOrEqual(started! + 15)
    expect(updated!).toBeGreaterThanOrEqual(finished!)
    expect(task.runtime!.duration_ms).toBe(finished! - Date.parse(task.runtime!.started_at!))
  })

  test('retry is 0 by default', async () => {
    expect((await control.run({ type: 'noop' })).retry).toBe(0)
  })

  test('graph_id is that of the answer, one for all tasks of a graph, another for each graph', async () => {
    const first = await control.submit([
      { id: 'g1', type: 'noop' },
      { id: 'g2', type: 'noop' },
    ])
    const second = await control.submit([{ id: 'g3', type: 'noop' }])
    expect((await control.get('g1')).graph_id).toBe(first.graph_id)
    expect((await control.get('g2')).graph_id).toBe(first.graph_id)
    expect((await control.get('g3')).graph_id).toBe(second.graph_id)
    expect(first.graph_id).not.toBe(second.graph_id)
  })
})

describe('params and input', () => {
  test('a legacy task keeps params and gains an equal input', async () => {
    const params = { message: 'old', 'x-list': [1, { deep: null }], x_text: 'ünï ∑ 日本 😀' }
    const task = await control.run({ type: 'noop', params })
    expect(task).toMatchObject({ type: 'os', tool_name: 'noop', execution_category: 'os' })
    expect(task.params).toEqual(params)
    expect(task.input).toEqual(params)
  })

  test('where both are given, input counts, and the record keeps all that was given', async () => {
    const given = { params: { message: 'params' }, input: { message: 'input' } }
    const more = { depends_on: [], timeout: 0, annotations: { who: 'me' } }
    expect(await control.run({ type: 'noop', ...given, ...more })).toMatchObject({
      ...{ ...given, ...more, result: { message: 'input' } },
    })
  })

  test('a task of the newer form takes its input from params as well', async () => {
    const task = await control.run({ type: 'os', tool_name: 'noop', params: { message: 'params' } })
    expect(task.result).toMatchObject({ message: 'params' })
  })

  test.each([[[1, 2]], ['text'], [7], [false]])('params may be any JSON value: %j is kept as it is', async (params) => {
    const task = await control.run({ type: 'noop', params })
    expect(task.params).toEqual(params)
  })
})

describe('GET /tasks', () => {
  test('is an empty array where there are none', async () => {
    await using empty = await startControl()
    const response = await empty.fetch('/tasks')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    expect(await response.text()).toBe('[]')
  })

  test('is in order of creation, then of position in the graph', async () => {
    await using fresh = await startControl()
    await fresh.submit([
      { id: 'z', type: 'noop', depends_on: ['10'] },
      { id: '10', type: 'noop' },
      { id: '9', type: 'noop' },
    ])
    await fresh.submit([
      { id: 'b', type: 'noop' },
      { id: 'a', type: 'noop' },
    ])
    await fresh.allEnded()
    expect((await fresh.list()).map((task) => task.id)).toEqual(['z', '10', '9', 'b', 'a'])
  })

  test('has the records of GET /tasks/{id}', async () => {
    await using fresh = await startControl()
    await fresh.submit([failing('x'), { id: 'y', type: 'noop', depends_on: ['x'] }, { id: 'w', type: 'noop' }])
    const listed = await fresh.allEnded()
    expect(listed).toHaveLength(3)
    expect(listed).toEqual(await Promise.all(listed.map((task) => fresh.get(task.id))))
  })

  test('takes thousands of tasks', async () => {
    await using fresh = await startControl()
    const ids = Array.from({ length: 5000 }, (_, i) => `task ${i} ${'x'.repeat(i % 97)}`)
    await fresh.submit(ids.map((id) => ({ id, type: 'noop', params: { message: id } })))
    const listed: TaskRecord[] = await fresh.allEnded()
    expect(listed.map((task) => task.id)).toEqual(ids)
  })
})

describe('ids with odd characters', () => {
  test.each([
    'a/b/c',
    '/',
    '100%',
    '%',
    '%2F',
    '%2e%2e',
    'two words',
    ' ',
    'a+b',
    'a?b=c#d',
    'a&b;c',
    'ünïcödé',
    '日本語',
    '😀',
    '"quoted"',
    "it's",
    'back\\slash',
    'line\nbreak',
    '{"json":1}',
    'null',
    '0',
    '__proto__',
    'constructor',
  ])('%j is found, listed and deleted under encodeURIComponent', async (id) => {
    const path = `/tasks/${encodeURIComponent(id)}`
    expect((await control.submit([{ id, type: 'noop' }])).task_ids).toEqual([id])
    expect(await control.ended(id)).toMatchObject({ id, status: 'success' })
    expect((await control.list()).filter((task) => task.id === id)).toHaveLength(1)
    expect((await control.fetch(path, { method: 'DELETE' })).status).toBe(204)
    const gone = await control.fetch(path)
    expect(gone.status).toBe(404)
    expect(await gone.json()).toEqual({ error: `task not found: ${id}` })
  })

  test('a long id is as good as a short one', async () => {
    const id = 'x'.repeat(MAX_TASK_ID_BYTES)
    await control.submit([{ id, type: 'noop' }])
    expect((await control.ended(id)).status).toBe('success')
  })

  test('dependencies on them are met', async () => {
    await control.submit([
      { id: 'next/%/😀', type: 'noop', depends_on: ['first /%'] },
      { id: 'first /%', type: 'noop' },
    ])
    expect((await control.ended('next/%/😀')).status).toBe('success')
  })
})
