/** GET /health and GET /metrics. Source: spec, Health response and Metrics response; contract, Health, metrics. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { HealthResponse } from '../../shared/contract/control.ts'
import { startControl } from '../support/control.ts'
import { replicaMember } from '../support/on-database.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

const failing = (id: string, more: object = {}) => ({ id, type: 'os', tool_name: 'no-such-tool', ...more })
const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const NOTHING = { tasks_total: 0, tasks_running: 0, tasks_succeeded: 0, tasks_failed: 0, by_type: {} }

describe('health', () => {
  test('is status ok, the fixed version v1.0.0, and the uptime since start', async () => {
    await using control = await startControl()
    const response = await control.fetch('/health')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    const health = (await response.json()) as HealthResponse
    expect(health).toEqual({
      status: 'ok',
      version: 'v1.0.0',
      uptime: expect.stringMatching(/^\d{1,2}s$/),
      ...replicaMember,
    })

    const uptime = async () =>
      Number.parseInt(((await (await control.fetch('/health')).json()) as HealthResponse).uptime, 10)
    const first = await uptime()
    await until(uptime, (seconds) => seconds > first)
  })
})

describe('metrics', () => {
  test('are JSON, and start at zero with the process', async () => {
    await using control = await startControl()
    for (const accept of ['', 'application/json', '*/*', 'application/json, text/plain;q=0.5']) {
      const response = await control.fetch('/metrics', { headers: accept === '' ? {} : { accept } })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toStartWith('application/json')
      expect(await response.json()).toEqual(NOTHING)
    }
  })

  test('count accepted, succeeded and failed tasks; skipped ones count neither as succeeded nor as failed', async () => {
    await using control = await startControl()
    await control.submit([
      noop('a'),
      noop('b', 'a'),
      { id: 'c', type: 'os', tool_name: 'noop' },
      failing('d', { retry: 1 }),
      noop('e', 'd'),
      noop('f', 'e'),
    ])
    await control.allEnded()
    expect(await control.metrics()).toEqual({
      tasks_total: 6,
      tasks_running: 0,
      tasks_succeeded: 3,
      tasks_failed: 1,
      by_type: { os: 6 },
    })
  })

  test('by_type counts the stored type', async () => {
    await using control = await startControl()
    await control.submit([noop('a'), { id: 'b', type: 'os.noop' }, { id: 'c', type: 'sleep' }, failing('d')])
    expect((await control.metrics()).by_type).toEqual({ os: 4 })
  })

  test('time tasks and requests, by route and kind of answer', async () => {
    await using control = await startControl()
    await control.submit([
      noop('a'),
      { id: 'b', type: 'shell', params: { command: 'ls', args: ['/no/such'] } },
      noop('c', 'b'),
    ])
    await control.allEnded()
    for (const method of ['PROPFIND', 'PURGE', 'PATCH']) await control.fetch('/tasks', { method })
    for (const path of ['/tasks/a', '/tasks/none', '/tasks?graph_id=none', '/nowhere']) await control.fetch(path)
    const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
    expect(text).toContain('service_control_task_duration_seconds_count 2\n') // c has not started
    const count = (method: string, route: string, status: string) =>
      `service_control_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"} `
    expect(text).toContain(`${count('GET', '/tasks/{id}', '2xx')}1\n`)
    expect(text).toContain(`${count('GET', '/tasks/{id}', '4xx')}1\n`)
    expect(text).toContain(`${count('POST', '/tasks', '2xx')}1\n`)
    expect(text).toContain(count('GET', '/tasks', '2xx'))
    expect(text).toContain(`${count('other', '/tasks', '4xx')}3\n`) // callers can make up methods
    expect(text).not.toContain('nowhere')
    expect(text).toMatch(/^service_control_build_info\{version="[\d.]+",commit="\w+/m)
    expect(text).toMatch(/^process_resident_memory_bytes [1-9]\d{6,}$/m)
  })

  test('do not count refused graphs', async () => {
    await using control = await startControl()
    expect((await control.post({ tasks: [noop('a'), noop('b', 'ghost')] })).status).toBe(400)
    expect((await control.post({ tasks: [noop('a'), { id: 'b', type: 'nope' }] })).status).toBe(400)
    expect(await control.metrics()).toEqual(NOTHING)
  })

  test('count replaced and deleted tasks once for each time they were accepted', async () => {
    await using control = await startControl()
    for (let i = 0; i < 3; i++) {
      await control.submit([noop('same')])
      await control.ended('same')
    }
    expect((await control.fetch('/tasks/same', { method: 'DELETE' })).status).toBe(204)
    expect(await control.metrics()).toMatchObject({ tasks_total: 3, tasks_succeeded: 3, by_type: { os: 3 } })
  })

  test('tasks_running counts those that run and those in backoff, not those that wait', async () => {
    await using control = await startControl()
    using gate = new Gate()
    await control.submit([gate.task('running'), noop('waiting', 'running')])
    await control.reached('running', 'running')
    expect((await control.post({ tasks: [noop('running')] })).status).toBe(409)
    expect(await control.metrics()).toMatchObject({ tasks_total: 2, tasks_running: 1, tasks_succeeded: 0 })
    using shut = new Gate()
    shut.open(500)
    await control.submit([shut.task('resting', { retry: 20 })])
    await until(
      () => control.get('resting'),
      (task) => task.run_status === 'accepted',
    )
    expect((await control.metrics()).tasks_running).toBe(2)
    shut.open(200)
    gate.open()
    await control.allEnded()
    expect(await control.metrics()).toMatchObject({ tasks_running: 0, tasks_succeeded: 3, tasks_failed: 0 })
  })

  test('live in memory only: recovered tasks do not enter tasks_total or by_type, but count when they end', async () => {
    using temp = tempDir()
    using gate = new Gate()
    const options = { dataDir: join(temp.path, 'data'), flags: ['--shutdown-timeout', '0s'] }
    await using before = await startControl(options)
    await before.submit([noop('done'), gate.task('open'), noop('later', 'open')])
    await before.ended('done')
    await before.reached('open', 'running')
    expect(await before.stop()).toBe(0)

    await using after = await startControl(options)
    await after.reached('open', 'running')
    expect(await after.metrics()).toEqual({ ...NOTHING, tasks_running: 1 })
    gate.open()
    await after.allEnded()
    expect(await after.metrics()).toEqual({ ...NOTHING, tasks_succeeded: 2 })
  })
})

test('GET /metrics is text where Accept prefers it, with the counts of the JSON', async () => {
  await using control = await startControl()
  await control.run({ type: 'noop' })
  await control.run({ type: 'file', params: { action: 'read', path: 'nothing' } })
  const accept = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.9'
  const response = await control.fetch('/metrics', { headers: { accept } })
  expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
  const lines = (await response.text()).split('\n')
  for (const line of [
    'service_control_tasks_total{status="success"} 1',
    'service_control_tasks_total{status="failed"} 1',
    'service_control_tasks_total{status="skipped"} 0',
    'service_control_tasks_by_type_total{type="os"} 2',
    'service_control_tasks_running 0',
    'service_control_queue_length 0',
  ]) {
    expect(lines).toContain(line)
  }
  const openMetrics = await control.fetch('/metrics', { headers: { accept: 'application/openmetrics-text' } })
  expect(openMetrics.headers.get('content-type')).toStartWith('application/openmetrics-text; version=1.0.0')
  expect(await openMetrics.text()).toEndWith('# EOF\n')
})
