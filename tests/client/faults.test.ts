/** Goal: a call is tried again where that is safe, and fails with an error that says why. Method: faulty servers. */
import { afterAll, describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import { retryAfterMs, type TaskmillError } from '../../client/errors.ts'
import { freePort } from '../support/free-port.ts'
import { lossyProxy } from '../support/lossy-proxy.ts'
import { startMill } from '../support/mill.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const GRAPH = { scope: 'graph', tasks: [{ id: 'a', type: 'noop' }] } as const

const failureOf = (call: Promise<unknown>): Promise<TaskmillError> =>
  call.then(
    () => {
      throw new Error('the call did not fail')
    },
    (error) => error,
  )

/** A server that gives these answers one after the other, the last one for ever. */
function serverOf(...answers: (() => Response)[]) {
  const times: number[] = []
  const server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch: () => answers[Math.min(times.push(performance.now()), answers.length) - 1]!(),
  })
  return { url: server.url.href, times, [Symbol.dispose]: () => void server.stop(true) }
}

const refusal =
  (status: number, headers: Record<string, string> = {}) =>
  () =>
    Response.json({ error: `refused ${status}` }, { status, headers: { 'x-trace-id': 'abc', ...headers } })
const healthy = () => Response.json({ status: 'ok', version: 'v1.0.0', uptime: '1s' })

test('a request is held for at most 50 s, so that proxies do not cut it', async () => {
  const asked: (string | null)[] = []
  const fetch = (to: string | URL | Request) => {
    asked.push(new URL(String(to)).searchParams.get('wait_ms'))
    return Promise.resolve(Response.json({ graph_id: 'g', state: 'success', status: 'success' }))
  }
  const client = new Taskmill({ url: 'http://127.0.0.1:1', fetch: fetch as typeof globalThis.fetch })
  await client.submit(GRAPH, { waitMs: 60_000 })
  await client.submit(GRAPH, { waitMs: 100 })
  await client.wait('g')
  expect(asked).toEqual(['50000', '100', '50000'])
})

describe('a lost answer', () => {
  test('of a submission with a key is asked for again, and there is one graph', async () => {
    await using mill = await startMill()
    await using proxy = await lossyProxy(mill.url)
    const client = new Taskmill({ url: proxy.url, token: mill.token })
    proxy.lose = 2
    const { graph_id } = await client.submit(GRAPH, { idempotencyKey: 'once' })
    expect(proxy.requests).toEqual(['POST /tasks', 'POST /tasks', 'POST /tasks'])
    expect((await Array.fromAsync(client.graphs())).map((graph) => graph.graph_id)).toEqual([graph_id])
    const other = await failureOf(client.submit({ ...GRAPH, name: 'other' }, { idempotencyKey: 'once' }))
    expect(other).toMatchObject({ code: 'key_reused', status: 422 })
  })

  test('of a submission without a key is an error: the graph may have been accepted', async () => {
    await using mill = await startMill()
    await using proxy = await lossyProxy(mill.url)
    const client = new Taskmill({ url: proxy.url, token: mill.token })
    proxy.lose = 1
    expect(await failureOf(client.submit(GRAPH))).toMatchObject({ code: 'unreachable', status: 0, wasSent: true })
    expect(proxy.requests.length).toBe(1)
    expect((await Array.fromAsync(client.graphs())).length).toBe(1)
  })

  test('of what may be done twice is asked for again; what was deleted is deleted', async () => {
    await using mill = await startMill()
    await using proxy = await lossyProxy(mill.url)
    const client = new Taskmill({ url: proxy.url, token: mill.token })
    const tasks = [
      { id: 'a', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'b', type: 'approval', params: { message: '?' } },
    ]
    const graph = await client.submit({ scope: 'graph', tasks })
    proxy.lose = 1
    expect((await client.approve({ ...graph, id: 'b' }, { who: 'ada' })).status).toBe('success')
    proxy.lose = 1
    await client.cancelGraph(graph)
    proxy.lose = 1
    expect((await client.wait(graph)).state).toBe('cancelled')
    proxy.lose = 1
    await client.deleteTask({ ...graph, id: 'a' })
    proxy.lose = 1
    await client.deleteGraph(graph)
    expect(proxy.lose).toBe(0)
    expect(await failureOf(client.deleteGraph(graph))).toMatchObject({ code: 'not_found' })
  })

  test('of a rerun without a key is an error', async () => {
    await using mill = await startMill()
    await using proxy = await lossyProxy(mill.url)
    const client = new Taskmill({ url: proxy.url, token: mill.token })
    const graph = await client.submit(GRAPH, { waitMs: 30_000 })
    proxy.lose = 1
    expect(await failureOf(client.rerun(graph, { from: ['a'] }))).toMatchObject({ code: 'unreachable' })
    expect((await Array.fromAsync(client.graphs())).length).toBe(2)
  })
})

describe('a service', () => {
  test('that comes back is waited for, also by a submission without a key', async () => {
    const port = await freePort()
    const submitting = new Taskmill({ url: `http://127.0.0.1:${port}` }).submit(GRAPH)
    const tries = { count: 0 }
    const answer = () => {
      tries.count++
      return tries.count === 1
        ? refusal(503)()
        : Response.json({ accepted: 1, task_ids: ['a'], graph_id: 'g' }, { status: 202 })
    }
    await failureOf(new Taskmill({ url: `http://127.0.0.1:${port}`, retryMs: 0 }).health())
    const server = Bun.serve({ hostname: '127.0.0.1', port, fetch: answer })
    expect((await submitting).graph_id).toBe('g')
    await server.stop(true)
  })

  test('that is not there is an error that says so', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const client = new Taskmill({ url, retryMs: 0 })
    const error = await failureOf(client.submit(GRAPH))
    expect(error).toMatchObject({ name: 'TaskmillError', code: 'unreachable', wasSent: false })
    expect(error.message).toStartWith(`POST /tasks: cannot reach ${url}: `)
    await expect(client.events().next()).rejects.toMatchObject({ code: 'unreachable' })
    await expect(client.followLog('a').next()).rejects.toMatchObject({ code: 'unreachable' })
    await expect(client.log('a')).rejects.toMatchObject({ code: 'unreachable' })
    await expect(client.tasks().next()).rejects.toMatchObject({ code: 'unreachable' })
  })

  test('that stays away is given up after a time', async () => {
    using server = serverOf(refusal(503))
    const start = performance.now()
    const client = new Taskmill({ url: server.url, retryMs: 250 })
    expect(await failureOf(client.health())).toMatchObject({
      code: 'unavailable',
      message: 'GET /health answered 503: refused 503',
    })
    expect(server.times.length).toBeGreaterThan(1)
    expect(performance.now() - start).toBeLessThan(20_000)
  })

  test('that names a time to wait is obeyed', async () => {
    using server = serverOf(refusal(429, { 'retry-after': '1' }), healthy)
    expect((await new Taskmill({ url: server.url }).health()).status).toBe('ok')
    expect(server.times[1]! - server.times[0]!).toBeGreaterThan(990)
    using patient = serverOf(refusal(503, { 'retry-after': '3600' }))
    const error = await failureOf(new Taskmill({ url: patient.url }).health())
    expect(error).toMatchObject({ code: 'unavailable', retryAfterMs: 3_600_000, traceId: 'abc' })
    expect(patient.times.length).toBe(1)
  })

  test.each([
    ['17', 17_000],
    ['Thu, 01 Jan 1970 00:00:09 GMT', 8_000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', undefined],
    [null, undefined],
  ])('Retry-After %p is %p ms', (header, expected) => {
    expect(retryAfterMs(header, 1_000)).toBe(expected)
  })

  test.each([
    [301, 'refused'],
    [400, 'invalid'],
    [401, 'unauthenticated'],
    [403, 'denied'],
    [404, 'not_found'],
    [405, 'refused'],
    [409, 'conflict'],
    [413, 'too_large'],
    [422, 'key_reused'],
    [500, 'internal'],
  ])('status %d is the code %s, and is not tried again', async (status, code) => {
    using server = serverOf(refusal(status))
    const error = await failureOf(new Taskmill({ url: server.url }).health())
    expect(error).toMatchObject({ code, status, traceId: 'abc' })
    expect(error.message).toStartWith(`GET /health answered ${status}: refused ${status}`)
    expect(server.times.length).toBe(1)
  })

  test.each([
    ['a page', () => new Response('<h1>Welcome</h1>'), 'something else than JSON'],
    ['a text', () => Response.json('hello'), 'something else than JSON'],
    ['an object in place of a list', healthy, 'answered no list'],
  ])('that is another one is told: %s', async (_, answer, text) => {
    using server = serverOf(answer)
    const error = await failureOf(Array.fromAsync(new Taskmill({ url: server.url }).graphs()))
    expect(error).toMatchObject({ code: 'unexpected_answer' })
    expect(error.message).toContain(text)
    expect(error.message).toContain('is this the control service?')
  })

  test.each([
    ['a page', 'none'],
    ['our own path', JSON.stringify({ error: 'not found: GET /graphs' })],
    ['a path of another service of ours', JSON.stringify({ error: { message: 'not found: GET /graphs' } })],
  ])('that does not know the path is asked whether it is the service: %s', async (_, body) => {
    using server = serverOf(() => new Response(body, { status: 404 }))
    const error = await failureOf(Array.fromAsync(new Taskmill({ url: server.url }).graphs()))
    expect(error).toMatchObject({ code: 'not_found', status: 404 })
    expect(error.message).toMatch(/^GET \/graphs answered 404.*: is this the control service\?$/)
  })
})

/** A server that takes requests and says nothing. */
async function silentServer() {
  const server = createServer((socket) => socket.on('error', () => {}).resume())
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    connections,
    [Symbol.dispose]: () => void server.close(),
  }
}

const saved = tempDir()
afterAll(() => saved[Symbol.dispose]())

const CALLS: Readonly<Record<string, (client: Taskmill, signal: AbortSignal) => Promise<unknown>>> = {
  submit: (client, signal) => client.submit(GRAPH, { signal }),
  dryRun: (client, signal) => client.dryRun(GRAPH, { signal }),
  run: (client, signal) => client.run(GRAPH, { signal }),
  wait: (client, signal) => client.wait('g', { signal }),
  waitTask: (client, signal) => client.waitTask('a', { signal }),
  getGraph: (client, signal) => client.getGraph('g', { signal }),
  getTask: (client, signal) => client.getTask('a', { signal }),
  tasks: (client, signal) => client.tasks({ signal }).next(),
  graphTasks: (client, signal) => client.graphTasks('g', { signal }).next(),
  graphs: (client, signal) => client.graphs({ signal }).next(),
  events: (client, signal) => client.events({ signal }).next(),
  graphEvents: (client, signal) => client.graphEvents('g', { signal }).next(),
  taskEvents: (client, signal) => client.taskEvents('a', { signal }).next(),
  log: (client, signal) => client.log('a', { signal }),
  followLog: (client, signal) => client.followLog('a', { signal }).next(),
  files: (client, signal) => client.files('a', { signal }),
  file: (client, signal) => client.file('a', 'f', { signal }).next(),
  saveFile: (client, signal) => client.saveFile('a', 'f', join(saved.path, 'f'), { signal }),
  cancelTask: (client, signal) => client.cancelTask('a', { signal }),
  cancelGraph: (client, signal) => client.cancelGraph('g', { signal }),
  deleteTask: (client, signal) => client.deleteTask('a', { signal }),
  deleteGraph: (client, signal) => client.deleteGraph('g', { signal }),
  rerun: (client, signal) => client.rerun('g', { signal }),
  retryTask: (client, signal) => client.retryTask('a', { signal }),
  retryGraph: (client, signal) => client.retryGraph('g', { signal }),
  patchGraph: (client, signal) => client.patchGraph('g', { remove: ['a'] }, { signal }),
  approve: (client, signal) => client.approve('a', { who: 'ada' }, { signal }),
  signal: (client, signal) => client.signal('a', 1, { signal }),
  pauseGraph: (client, signal) => client.pauseGraph('g', {}, { signal }),
  resumeGraph: (client, signal) => client.resumeGraph('g', { signal }),
  pause: (client, signal) => client.pause({}, { signal }),
  resume: (client, signal) => client.resume({}, { signal }),
  pauses: (client, signal) => client.pauses({ signal }),
  putSchedule: (client, signal) => client.putSchedule('s', { every: 1_000, graph: GRAPH }, { signal }),
  schedules: (client, signal) => client.schedules({ signal }),
  getSchedule: (client, signal) => client.getSchedule('s', { signal }),
  pauseSchedule: (client, signal) => client.pauseSchedule('s', { signal }),
  resumeSchedule: (client, signal) => client.resumeSchedule('s', { signal }),
  triggerSchedule: (client, signal) => client.triggerSchedule('s', { signal }),
  deleteSchedule: (client, signal) => client.deleteSchedule('s', { signal }),
  reject: (client, signal) => client.reject('a', { who: 'ada' }, { signal }),
  health: (client, signal) => client.health({ signal }),
}

test('every method takes a signal', () => {
  const methods = Object.getOwnPropertyNames(Taskmill.prototype).filter(
    (name) => !['constructor', 'url'].includes(name),
  )
  expect(Object.keys(CALLS).toSorted()).toEqual(methods.toSorted())
})

describe.each(Object.keys(CALLS))('%s', (name) => {
  const call = CALLS[name]!

  test('ends when its signal fires, and closes its connection', async () => {
    using server = await silentServer()
    const controller = new AbortController()
    const calling = call(new Taskmill({ url: server.url }), controller.signal)
    await until(server.connections, (count) => count === 1)
    const reason = new Error('enough')
    controller.abort(reason)
    expect(await failureOf(calling)).toBe(reason as TaskmillError)
    await until(server.connections, (count) => count === 0)
  })

  test('sends nothing for a signal that has fired', async () => {
    using server = await silentServer()
    const reason = new Error('enough')
    expect(await failureOf(call(new Taskmill({ url: server.url }), AbortSignal.abort(reason)))).toBe(
      reason as TaskmillError,
    )
    expect(await server.connections()).toBe(0)
  })

  test('ends when its signal fires between two tries', async () => {
    using server = serverOf(refusal(503, { 'retry-after': '20' }))
    const controller = new AbortController()
    const calling = call(new Taskmill({ url: server.url }), controller.signal)
    calling.catch(() => {})
    await until(() => server.times.length, 1)
    const reason = new Error('enough')
    controller.abort(reason)
    expect(await failureOf(calling)).toBe(reason as TaskmillError)
  })
})

test('a service that says nothing is given up in time', async () => {
  using server = await silentServer()
  const client = new Taskmill({ url: server.url, timeoutMs: 30, retryMs: 0 })
  expect(await failureOf(client.health())).toMatchObject({
    code: 'timeout',
    message: `GET /health: no answer from ${server.url} within 30 ms`,
  })
  expect(await failureOf(client.log('a', { timeoutMs: 20 }))).toMatchObject({ code: 'timeout' })
  expect(await failureOf(client.submit(GRAPH, { timeoutMs: 20, waitMs: 10 }))).toMatchObject({
    code: 'timeout',
    wasSent: true,
  })
})

test('a wait has a time limit of its own, and the graph goes on', async () => {
  await using mill = await startMill()
  const { client } = mill
  const graph = await client.submit({
    scope: 'graph',
    tasks: [{ id: 'a', type: 'sleep', params: { duration_ms: 600_000 } }],
  })
  expect(await failureOf(client.wait(graph, { timeoutMs: 30 }))).toMatchObject({ code: 'timeout', status: 0 })
  expect(await failureOf(client.waitTask({ ...graph, id: 'a' }, { timeoutMs: 0 }))).toMatchObject({ code: 'timeout' })
  expect((await client.getGraph(graph)).state).toBe('running')
})

test('a wait outlasts a restart of the service', async () => {
  await using mill = await startMill()
  const { client } = mill
  const graph = await client.submit({
    scope: 'graph',
    tasks: [{ id: 'a', type: 'approval', params: { message: '?' } }],
  })
  const waiting = client.wait(graph)
  await mill.restart()
  await client.approve({ ...graph, id: 'a' }, { who: 'ada' })
  expect((await waiting).state).toBe('success')
})

test.each([
  [{ url: 'ftp://host' }, 'url: expected an http: or https: address without query, got "ftp://host"'],
  [{ url: 'localhost' }, 'url: expected'],
  [{ url: 'http://host/?a=b' }, 'url: expected'],
  [{ timeoutMs: -1 }, 'timeoutMs: expected milliseconds from 0 to 2147483647, got -1'],
  [{ retryMs: Number.NaN }, 'retryMs: expected'],
  [{ awayMs: 2 ** 31 }, 'awayMs: expected'],
])('options that cannot be right: %p', (options, message) => {
  expect(() => new Taskmill(options)).toThrow(message)
})
