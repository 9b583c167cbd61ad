/** POST /graphs/{id}/cancel and DELETE /graphs/{id}. Source: docs/http.md, "Cancel and delete a graph". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type CancelGraphResponse, type GraphDetails, MAX_CANCELLED_ENTRIES } from '../../shared/contract/graphs.ts'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

/** Attempts that go on for minutes. */
const RETRIES = { retry: 1_000, backoff: { initial_ms: 100, factor: 1 } }

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })

async function cancel(id: string, service = control): Promise<CancelGraphResponse> {
  const response = await service.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
  expect(response.status).toBe(202)
  return (await response.json()) as CancelGraphResponse
}

const remove = (id: string, service = control) => service.fetch(`/graphs/${id}`, { method: 'DELETE' })
const look = async (id: string, query = '', service = control) =>
  (await (await service.fetch(`/graphs/${id}${query}`)).json()) as GraphDetails

async function ended(tasks: readonly object[], service = control): Promise<string> {
  const { graph_id } = await service.submit(tasks)
  expect((await look(graph_id, '?wait_ms=60000', service)).state).not.toBe('running')
  return graph_id
}

describe('a cancel of a graph', () => {
  test.each<[string, object]>([
    ['that runs', { type: 'sleep', params: { duration_ms: 600_000 } }],
    ['between two attempts', { type: 'file', params: { action: 'read', path: 'none' }, ...RETRIES }],
    ['with children', { type: 'sleep', for_each: [1, 2], params: { duration_ms: 600_000 } }],
  ])('ends a deleted task %s, too, which no answer names', async (_, task) => {
    await using service = await startControl()
    const { graph_id } = await service.submit([{ id: 'gone', ...task }, noop('stays'), noop('later', 'gone')])
    await service.reached('gone', 'running')
    await service.reached('stays', 'success')
    expect((await service.fetch('/tasks/gone', { method: 'DELETE' })).status).toBe(204)
    expect((await look(graph_id, '', service)).state).toBe('running')
    expect((await remove(graph_id, service)).status).toBe(409)
    const { tasks } = await cancel(graph_id, service)
    expect(tasks.map(({ task_id }) => task_id)).toEqual(['later'])
    const { state } = await look(graph_id, '?wait_ms=20000', service)
    expect(['cancelled', 'failed']).toContain(state)
    const events = await (await service.fetch(`/graphs/${graph_id}/events?until=ended&after=0`)).text()
    const afterDeletion = events.slice(events.indexOf('event: task_deleted'))
    expect(afterDeletion).not.toMatch(/"task_id":"gone[^}]*"status":"success"/)
    expect((await remove(graph_id, service)).status).toBe(204)
  })

  test('answers the tasks that changed: what was cancelled, then what was skipped', async () => {
    using gate = new Gate()
    const { graph_id } = await control.submit([
      noop('before'),
      gate.task('runs', { depends_on: ['before'] }),
      noop('after', 'runs'),
      noop('last', 'after'),
    ])
    await until(() => gate.arrivals, 1)
    const { tasks, state, truncated } = await cancel(graph_id)
    expect(['running', 'cancelled']).toContain(state) // the attempt may have stopped by now
    expect(truncated).toBeUndefined()
    const entry = (task_id: string, status: string, running = 'cancelled') => ({
      ...{ task_id, status, runtime: { status: running, error: { code: 'cancelled' } } },
      event: { type: 'task_cancel_requested', task_id },
    })
    expect(new Map(tasks.map((task) => [task.task_id, task]))).toEqual(
      new Map([
        ['after', entry('after', 'cancelled')],
        ['last', entry('last', 'cancelled')],
        ['runs', entry('runs', 'cancelling', 'cancelling')],
      ]) as never,
    )
    const { counts } = await look(graph_id, '?wait_ms=60000')
    expect(counts).toEqual({ success: 1, cancelled: 3 })
    expect(await cancel(graph_id)).toEqual({ graph_id, state: 'cancelled', tasks: [] })
  })

  test('names the first thousand of many tasks', async () => {
    using gate = new Gate()
    const many = Array.from({ length: MAX_CANCELLED_ENTRIES + 5 }, (_, i) => noop(`many${i}`, 'held'))
    const { graph_id } = await control.submit([gate.task('held'), ...many])
    const { tasks, truncated } = await cancel(graph_id)
    expect(tasks).toHaveLength(MAX_CANCELLED_ENTRIES)
    expect(truncated).toBe(true)
    expect((await look(graph_id, '?wait_ms=60000')).counts).toEqual({ cancelled: many.length + 1 })
  })

  test('survives a kill of the service', async () => {
    await using first = await startControl()
    const { graph_id } = await first.submit([
      { id: 'sleeps', type: 'sleep', params: { duration_ms: 600_000 } },
      noop('after', 'sleeps'),
    ])
    await first.reached('sleeps', 'running')
    await cancel(graph_id, first)
    await first.stop('SIGKILL')
    await using second = await startControl({ dataDir: first.dataDir })
    expect((await look(graph_id, '', second)).state).toBe('cancelled')
  })

  test('of an unknown graph is 404', async () => {
    const response = await control.fetch('/graphs/nothing/cancel', { method: 'POST' })
    expect([response.status, await response.json()]).toEqual([404, { error: 'graph not found: nothing' }])
  })
})

describe('a deletion of a graph', () => {
  test('is 204 without a body, and all of its records are gone', async () => {
    const id = await ended([noop('d1'), noop('d2', 'd1')])
    const other = await ended([noop('stays')])
    const response = await remove(id)
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(response.headers.has('content-type')).toBe(false)
    for (const path of ['/tasks/d1', '/tasks/d2', `/graphs/${id}`]) expect((await control.fetch(path)).status).toBe(404)
    expect((await remove(id)).status).toBe(404)
    const listed = (await (await control.fetch('/graphs')).json()) as { graph_id: string }[]
    expect(listed.map(({ graph_id }) => graph_id)).toContain(other)
    expect(listed.map(({ graph_id }) => graph_id)).not.toContain(id)
    expect((await control.list()).map((task) => task.id)).not.toContain('d1')
  })

  test('frees the ids', async () => {
    await remove(await ended([noop('free')]))
    expect((await control.run(noop('free'))).status).toBe('success')
  })

  test('of a graph that has not ended is 409, and changes nothing', async () => {
    using gate = new Gate()
    const { graph_id } = await control.submit([gate.task('lives')])
    const response = await remove(graph_id)
    expect([response.status, await response.json()]).toEqual([
      409,
      { error: `graph is still running: ${graph_id} (cancel it first)` },
    ])
    gate.open()
    expect((await look(graph_id, '?wait_ms=60000')).state).toBe('success')
    expect((await remove(graph_id)).status).toBe(204)
  })

  test('of an unknown graph is 404', async () => {
    const response = await remove('nothing')
    expect([response.status, await response.json()]).toEqual([404, { error: 'graph not found: nothing' }])
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)('survives %s, and leaves the graphs beside it alone', async (signal) => {
    await using first = await startControl()
    const older = await ended([noop('x'), noop('y')], first)
    const gone = await ended([noop('x'), noop('z')], first) // replaces a task of the older graph
    const newer = await ended([noop('w')], first)
    const before = [await look(older, '', first), await look(newer, '', first)]
    expect((await remove(gone, first)).status).toBe(204)
    expect([await look(older, '', first), await look(newer, '', first)]).toEqual(before)
    await first.stop(signal)
    await using second = await startControl({ dataDir: first.dataDir })
    expect([await look(older, '', second), await look(newer, '', second)]).toEqual(before)
    for (const path of [`/graphs/${gone}`, '/tasks/x', '/tasks/z']) expect((await second.fetch(path)).status).toBe(404)
  })

  test('frees the files of large results', async () => {
    await using service = await startControl({ flags: ['--persist-interval', '50ms'] })
    await Bun.write(join(service.cwd, 'large.txt'), 'x'.repeat(200_000))
    const id = await ended([{ id: 'reads', type: 'file', params: { action: 'read', path: 'large.txt' } }], service)
    const files = () => readdirSync(join(service.dataDir, 'results'))
    expect(files()).toHaveLength(1)
    expect((await remove(id, service)).status).toBe(204)
    await until(files, (names) => names.length === 0)
  })
})
