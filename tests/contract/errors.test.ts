/** Error bodies, 404, 405, HEAD and trace ids. Source: spec, Errors A and Events; contract, Bodies and errors. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'
import { RawClient } from './raw-client.ts'

let control: Control
let gate: Gate
beforeAll(async () => {
  control = await startControl({ flags: ['--max-body-bytes', '4096', '--log-level', 'debug'] })
  gate = new Gate()
  await control.submit([{ id: 'known', type: 'noop' }, { id: '\ufffd', type: 'noop' }, gate.task('active')])
  await control.ended('known')
  await control.reached('active', 'running')
})
afterAll(async () => {
  gate[Symbol.dispose]()
  await control.dispose()
})

type Refusal = [method: string, path: string, status: number, body: string | null]

const REFUSALS: Refusal[] = [
  ['POST', '/tasks', 400, '{"tasks": ['],
  ['POST', '/tasks', 400, '{"tasks": []}'],
  ['POST', '/tasks', 400, '{"tasks": [{"id": "x", "type": "nope"}]}'],
  ['POST', '/tasks', 409, '{"tasks": [{"id": "active", "type": "noop"}]}'],
  ['POST', '/tasks', 413, 'x'.repeat(4097)],
  ['POST', '/tasks/active/cancel', 413, 'x'.repeat(4097)],
  ['GET', '/tasks/unknown', 404, null],
  ['DELETE', '/tasks/unknown', 404, null],
  ['GET', '/nowhere', 404, null],
  ['POST', '/nowhere', 404, '{}'],
  ['PUT', '/tasks', 405, '{}'],
  ['POST', '/health', 405, '{}'],
  ['DELETE', '/metrics', 405, null],
]

const ask = (method: string, path: string, body: string | null, headers: Record<string, string> = {}) =>
  control.fetch(path, { method, headers, body })

describe('error bodies', () => {
  test.each(REFUSALS)(
    'are {"error": string} as JSON, with the trace id of the request: %s %s %d',
    async (method, path, status, body) => {
      const response = await ask(method, path, body, { 'X-Trace-ID': 'my-trace' })
      expect([response.status, response.headers.get('x-trace-id')]).toEqual([status, 'my-trace'])
      expect(response.headers.get('content-type')).toStartWith('application/json')
      const answer = (await response.json()) as { error: string }
      expect(answer).toEqual({ error: expect.any(String) })
      expect(answer.error).not.toBe('')
      expect(answer.error).not.toMatch(/\n|\bat \/|node_modules|<html/i)
    },
  )

  test.each(['%zz', '%c3%28', '%u0041'])('of a path that is not well encoded, too: /tasks/%s', async (part) => {
    using client = await RawClient.connect(control)
    client.send(`GET /tasks/${part} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
    await client.closed
    expect(client.received).toMatch(/^HTTP\/1\.1 400 /)
    const [head, body] = client.received.split('\r\n\r\n')
    expect(head!.toLowerCase()).toContain('content-type: application/json')
    expect(JSON.parse(body!)).toEqual({
      error: `malformed escape in the path: /tasks/${part} (expected UTF-8, percent-encoded)`,
    })
  })
})

describe('404', () => {
  test.each([
    ['DELETE', '/tasks/known/more'],
    ['GET', '/Health'],
  ])('an unknown path is named with its method: %s %s', async (method, path) => {
    const response = await control.fetch(path, { method })
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({ error: `not found: ${method} ${path}` })
  })
})

describe('405', () => {
  test.each([
    ['/tasks', ['GET', 'POST'], ['PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/tasks/known', ['GET', 'DELETE'], ['POST', 'PUT', 'PATCH', 'OPTIONS']],
    ['/tasks/unknown', ['GET', 'DELETE'], ['POST', 'PUT', 'PATCH']],
    ['/health', ['GET'], ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/metrics', ['GET'], ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
  ])('a known path with a wrong method is answered with Allow: %s', async (path, allowed, refused) => {
    for (const method of refused) {
      const response = await control.fetch(path, { method })
      expect({ method, status: response.status }).toEqual({ method, status: 405 })
      const allow = (response.headers.get('allow') ?? '').split(/\s*,\s*/).filter((name) => name !== 'HEAD')
      expect(allow.sort()).toEqual([...allowed].sort())
      expect(await response.json()).toEqual({ error: expect.any(String) })
    }
    expect((await control.get('known')).status).toBe('success')
  })
})

describe('HEAD', () => {
  test.each([
    ['/health', 200],
    ['/metrics', 200],
    ['/tasks', 200],
    ['/tasks/known', 200],
    ['/tasks/unknown', 404],
    ['/nowhere', 404],
  ])('answers as GET does, without the body: %s', async (path, status) => {
    const [head, get] = [await control.fetch(path, { method: 'HEAD' }), await control.fetch(path)]
    expect(head.status).toBe(status)
    expect(await head.text()).toBe('')
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    expect((await get.text()).length).toBeGreaterThan(0)
  })

  test('sends no bytes after its headers', async () => {
    using client = await RawClient.connect(control)
    client.send('HEAD /tasks/known HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    await client.closed
    expect(client.received).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/)
  })
})

describe('X-Trace-ID', () => {
  const FRESH = /^[0-9a-f]{16}$/

  test.each(['/health', '/metrics', '/tasks', '/tasks/known'])('is echoed on %s', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const response = await control.fetch(path, { method, headers: { 'x-trace-id': 'T' } })
      expect(response.headers.get('x-trace-id')).toBe('T')
    }
  })

  test('is echoed on 202 and 204', async () => {
    const headers = { 'x-trace-id': 'accepted' }
    const accepted = await control.post({ tasks: [{ id: 'echoed', type: 'noop' }] }, headers)
    expect([accepted.status, accepted.headers.get('x-trace-id')]).toEqual([202, 'accepted'])
    await control.ended('echoed')
    const removed = await control.fetch('/tasks/echoed', { method: 'DELETE', headers })
    expect([removed.status, removed.headers.get('x-trace-id')]).toEqual([204, 'accepted'])
  })

  test('is made up where there is none, for each request another', async () => {
    const made = await Promise.all(
      Array.from({ length: 20 }, async () => (await control.fetch('/health')).headers.get('x-trace-id')!),
    )
    for (const id of made) expect(id).toMatch(FRESH)
    expect(new Set(made).size).toBe(20)
  })

  test('is logged as trace_id on every line that the request or its tasks cause', async () => {
    await control.submit(
      [
        { id: 'traced', type: 'os', tool_name: 'no-such-tool', retry: 1 },
        { id: 'traced-leaf', type: 'noop', depends_on: ['traced'] },
      ],
      { 'x-trace-id': 'trace-of-tasks' },
    )
    const { graph_id } = await control.ended('traced-leaf')
    const lines = await until(
      () => control.log.filter((line) => line.graph_id === graph_id || String(line.task_id).startsWith('traced')),
      (found) => found.some(({ msg }) => msg === 'graph ended'),
    )
    expect(lines.some(({ task_id }) => task_id === 'traced')).toBe(true)
    expect(new Set(lines.map(({ trace_id }) => trace_id))).toEqual(new Set(['trace-of-tasks']))
  })

  test('is logged for a request that was refused', async () => {
    await control.post('{', { 'x-trace-id': 'trace-of-refusal' })
    const line = await until(() => control.log.find(({ trace_id }) => trace_id === 'trace-of-refusal'))
    expect(line).toMatchObject({ status: 400 })
  })
})
