/** GET /tasks with a filter and in pages; query parameters that a route does not have. Source: contract 5, "Unknown fields". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'

let control: Control
let graphIds: string[]
beforeAll(async () => {
  control = await startControl()
  const graphs = [
    [
      { id: 'a1', type: 'noop' },
      { id: 'a2', type: 'file', params: { action: 'read', path: 'not/there' } },
      { id: 'a3', type: 'noop', depends_on: ['a2'] },
    ],
    [{ id: 'b1', type: 'mcp', tool_name: 'builtin/echo', params: { echo: 'b' } }],
    [
      { id: 'c1', type: 'noop' },
      { id: 'c2', type: 'sleep', params: { duration_ms: 600_000 } },
    ],
  ]
  graphIds = []
  for (const tasks of graphs) graphIds.push((await control.submit(tasks)).graph_id)
  for (const id of ['a1', 'a2', 'a3', 'b1', 'c1']) await control.ended(id)
  await control.reached('c2', 'running')
})
afterAll(() => control.dispose())

const ids = (tasks: readonly TaskRecord[]) => tasks.map(({ id }) => id)

async function list(query: string): Promise<{ ids: string[]; next: string | null }> {
  const response = await control.fetch(`/tasks${query}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  return { ids: ids((await response.json()) as TaskRecord[]), next: response.headers.get('x-next-cursor') }
}

describe('a list', () => {
  test.each([
    ['', ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']],
    ['?status=failed', ['a2']],
    ['?status=failed,skipped', ['a2', 'a3']],
    ['?status=running&status=failed', ['a2', 'c2']],
    ['?status=cancelled', []],
    ['?type=mcp', ['b1']],
    ['?type=os', ['a1', 'a2', 'a3', 'c1', 'c2']],
    ['?type=sleep,file', ['a2', 'c2']],
    ['?type=os.noop&status=success', ['a1', 'c1']],
    ['?graph_id=nothing', []],
    ['?x-cache=1&status=failed', ['a2']],
  ])('%s', async (query, expected) => {
    expect(await list(query)).toEqual({ ids: expected, next: null })
  })

  test('of one graph', async () => {
    expect((await list(`?graph_id=${graphIds[0]}`)).ids).toEqual(['a1', 'a2', 'a3'])
    expect((await list(`?graph_id=${graphIds[2]}&status=running`)).ids).toEqual(['c2'])
  })

  test('comes in pages, and the last has no cursor', async () => {
    const first = await list('?limit=4')
    expect(first.ids).toEqual(['a1', 'a2', 'a3', 'b1'])
    expect(await list(`?limit=4&cursor=${first.next}`)).toEqual({ ids: ['c1', 'c2'], next: null })
    expect(await list(`?cursor=${first.next}`)).toEqual({ ids: ['c1', 'c2'], next: null })
    expect(await list('?limit=6')).toMatchObject({ next: null })
    const filtered = await list('?limit=1&type=noop')
    expect(filtered.ids).toEqual(['a1'])
    expect((await list(`?limit=1&type=noop&cursor=${filtered.next}`)).ids).toEqual(['a3'])
  })

  test('goes on where it was when tasks come and go', async () => {
    await using service = await startControl()
    const names = (prefix: string) => Array.from({ length: 4 }, (_, i) => ({ id: `${prefix}${i}`, type: 'noop' }))
    for (const prefix of ['a', 'b', 'c']) await service.submit(names(prefix))
    await service.allEnded()
    const page = async (cursor: string | null) => {
      const response = await service.fetch(`/tasks?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`)
      return { ids: ids((await response.json()) as TaskRecord[]), next: response.headers.get('x-next-cursor') }
    }
    const first = await page(null)
    expect(first.ids).toEqual(['a0', 'a1', 'a2'])
    for (const id of ['a0', 'a2', 'a3', 'b0']) await service.fetch(`/tasks/${id}`, { method: 'DELETE' })
    await service.submit(names('d'))
    const second = await page(first.next)
    expect(second.ids).toEqual(['b1', 'b2', 'b3'])
    await service.submit(names('b')) // replaces what is left of the graph that the cursor is in
    expect((await page(second.next)).ids).toEqual(['c0', 'c1', 'c2'])
  })

  test.each([
    [
      '?status=faild',
      'invalid status "faild": expected pending, running, success, failed, skipped, cancelling, cancelled (did you mean "failed"?)',
    ],
    ['?status=', 'invalid status "": expected pending, running, success, failed, skipped, cancelling, cancelled'],
    [
      '?type=bash',
      'invalid type "bash": expected approval, cli-skills, mcp, os, runtime, wait, dns, file, http, noop, shell, sleep, tcp',
    ],
    ['?limit=0', 'invalid limit "0": expected a whole number from 1 to 1000'],
    ['?limit=1001', 'invalid limit "1001": expected a whole number from 1 to 1000'],
    ['?cursor=7', 'invalid cursor "7": expected the X-Next-Cursor of an earlier answer'],
    ['?graph_id=', 'invalid graph_id "": expected the id of a graph'],
    ['?stats=failed', 'unknown query parameter "stats" (did you mean "status"?)'],
    ['?limit=1&limit=2', 'query parameter "limit" is given twice'],
  ])('%s is refused', async (query, error) => {
    const response = await control.fetch(`/tasks${query}`)
    expect({ status: response.status, body: await response.json() }).toEqual({ status: 400, body: { error } })
  })
})

describe('an unknown query parameter is refused', () => {
  let runtime: Runtime
  beforeAll(async () => {
    runtime = await startRuntime()
  })
  afterAll(() => runtime.dispose())

  test.each([
    ['POST', '/tasks'],
    ['DELETE', '/tasks/c2'],
    ['POST', '/tasks/c2/cancel'],
    ['POST', '/mcp'],
  ])('control: %s %s', async (method, path) => {
    const body = method === 'POST' ? JSON.stringify({ tasks: [{ id: 'q', type: 'noop' }] }) : null
    const response = await control.fetch(`${path}?stats=1`, { method, body })
    expect(response.status).toBe(400)
    if (method !== 'HEAD') expect(await response.json()).toEqual({ error: 'unknown query parameter "stats"' })
    expect((await control.get('c2')).status).toBe('running')
  })

  test.each([
    ['GET', '/api/v1/runtime/info'],
    ['POST', '/api/v1/tasks'],
    ['POST', '/api/v1/tasks/none/kill'],
  ])('runtime: %s %s', async (method, path) => {
    const response = await runtime.fetch(`${path}?wait=1`, { method })
    expect(await response.json()).toEqual({
      error: { code: 'invalid_input', message: 'unknown query parameter "wait"', details: null },
    })
  })

  test('with the nearest that the route has', async () => {
    expect(await (await runtime.fetch('/api/v1/tasks/none?wait=1')).json()).toMatchObject({
      error: { message: 'unknown query parameter "wait" (did you mean "wait_ms"?)' },
    })
  })

  test('but not where unknown fields are ignored, and a known path with another method stays 405', async () => {
    expect((await control.fetch('/tasks?stats=1', { method: 'PUT' })).status).toBe(405)
    expect((await control.fetch('/nowhere?stats=1')).status).toBe(404)
    await using service = await startControl({ flags: ['--unknown-fields', 'ignore'] })
    expect((await service.fetch('/tasks?stats=1')).status).toBe(200)
    await using sloppy = await startRuntime({ flags: ['--unknown-fields', 'ignore'] })
    expect((await sloppy.fetch('/healthz?stats=1')).status).toBe(200)
  })
})
