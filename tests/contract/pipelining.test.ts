/**
 * Requests that are sent before the answer to the one before them has come. Answers that are made at once come in order; a
 * request behind an answer that is under way ends the connection, and what was not answered was not taken in either.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Control, startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const post = (path: string, body: string, headers = '') =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
const postInChunks = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n` +
  `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
const graph = (id: string) => JSON.stringify({ tasks: [{ id, type: 'noop' }] })

/** Status and body of the answers that `received` holds whole. */
function answersIn(received: string): [status: number, body: string][] {
  const answers: [number, string][] = []
  for (let at = 0; ; ) {
    const bodyAt = received.indexOf('\r\n\r\n', at) + 4
    const head = received.slice(at, bodyAt)
    const end = bodyAt + Number(/^content-length: (\d+)\r$/im.exec(head)?.[1])
    if (bodyAt < 4 || !(end <= received.length)) return answers
    answers.push([Number(head.split(' ')[1]), received.slice(bodyAt, end)])
    at = end
  }
}

/** What came of the answers to `requests`, which leave in one piece, until all were there or the connection ended. */
async function answersOnce(service: { readonly url: string }, requests: readonly string[]) {
  using client = await RawClient.connect(service)
  let isClosed = false
  void client.closed.then(() => {
    isClosed = true
  })
  client.send(requests.join(''))
  return await until(
    () => ({ answers: answersIn(client.received), received: client.received, isClosed }),
    ({ answers, isClosed }) => isClosed || answers.length === requests.length,
  )
}

/** All answers. A list that takes longer than others may wait is not made at once: a busy machine may need several tries. */
const answersTo = (service: { readonly url: string }, requests: readonly string[]) =>
  until(
    () => answersOnce(service, requests),
    ({ answers }) => answers.length === requests.length,
  )

test('of control: what needs no disk is answered in order, lists too', async () => {
  await using control = await startControl()
  await control.submit([{ id: 'a', type: 'noop' }])
  await control.ended('a')
  const requests = ['/tasks', '/tasks', '/tasks/a', '/health', '/nothing', '/tasks', '/readyz'].map(get)
  const { answers } = await answersTo(control, [...requests, post('/tasks', '{"tasks": []}'), get('/tasks/a')])
  expect(answers.map(([status]) => status)).toEqual([200, 200, 200, 200, 404, 200, 200, 400, 200])
  expect(JSON.parse(answers[1]![1])).toMatchObject([{ id: 'a' }])
  expect(JSON.parse(answers[8]![1])).toMatchObject({ id: 'a' })
})

describe('of 5,000 tasks', () => {
  let control: Control
  beforeAll(async () => {
    control = await startControl()
    await control.submit(Array.from({ length: 5_000 }, (_, i) => ({ id: `task-${i}`, type: 'noop' })))
    await control.allEnded()
  })
  afterAll(() => control.dispose())

  test('pages of 1,000 are answered in order, with the cursor of the next', async () => {
    const paths = ['/tasks?limit=1000', '/tasks?limit=1000&status=success', '/tasks?limit=2', '/health']
    const { answers, received } = await answersTo(control, paths.map(get))
    const ids = answers.slice(0, 3).map(([, body]) => (JSON.parse(body) as { id: string }[]).map(({ id }) => id))
    const expected = Array.from({ length: 1_000 }, (_, i) => `task-${i}`)
    expect(ids).toEqual([expected, expected, expected.slice(0, 2)])
    expect(received.match(/x-next-cursor: \d+-999\r/gi)?.length).toBe(2)
  })

  test('a whole list is cut by a request behind it, which ends the connection', async () => {
    using client = await RawClient.connect(control)
    client.send(get('/tasks') + get('/health'))
    await client.closed
    expect(answersIn(client.received)).toEqual([])
    expect((await control.list()).length).toBe(5_000)
  })
})

test('of the runtime: what needs no disk is answered in order', async () => {
  await using runtime = await startRuntime()
  const requests = ['/api/v1/tasks', '/api/v1/tasks', '/api/v1/tasks/none', '/healthz', '/api/v1/runtime/info'].map(get)
  const { answers } = await answersTo(runtime, [...requests, post('/api/v1/tasks', '{}'), get('/healthz')])
  expect(answers.map(([status]) => status)).toEqual([200, 200, 404, 200, 200, 400, 200])
})

test.each([
  ['a graph', (path: string, body: string) => post(path, body)],
  ['a graph in chunks', postInChunks],
])('%s that loses its answer to a request behind it was not taken in', async (_, first) => {
  await using control = await startControl()
  for (const [i, behind] of [get('/health'), get('/tasks'), post('/tasks', graph('behind'))].entries()) {
    using client = await RawClient.connect(control)
    client.send(first('/tasks', graph(`first-${i}`)) + behind)
    await client.closed
    expect(client.received).toBe('')
  }
  // By the time that this is on disk, so would those before it be.
  await control.submit([{ id: 'later', type: 'noop' }])
  await control.ended('later')
  expect((await control.list()).map(({ id }) => id)).toEqual(['later'])
})

test('neither is one after a restart, nor an action or a call; one with a key is, and its answer is given again', async () => {
  await using control = await startControl({ flags: ['--persist-interval', '1h'] })
  const action = JSON.stringify({ action_id: 'action', action: { kind: 'noop' } })
  const call = JSON.stringify({ id: 'call', tool_name: 'echo' })
  for (const lost of [
    post('/tasks', graph('lost')),
    post('/adapters/actions', action),
    post('/mcp/call', call),
    post('/tasks', graph('kept'), 'Idempotency-Key: k\r\n'),
  ]) {
    using client = await RawClient.connect(control)
    client.send(lost + get('/health'))
    await client.closed
    expect(client.received).toBe('')
  }
  expect((await control.post(graph('kept'), { 'idempotency-key': 'k' })).status).toBe(202)
  expect((await control.allEnded()).map(({ id }) => id)).toEqual(['kept'])
  const { dataDir } = control
  await control.stop('SIGKILL')
  await using after = await startControl({ dataDir })
  expect((await after.list()).map(({ id }) => id)).toEqual(['kept'])
})
