/** Callbacks of graphs: what is sent, signed, tried again, kept over crashes, and refused. Against the built service. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { lookup } from 'node:dns/promises'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { NoteRow } from '../../control/log/notes.ts'
import { type AddressClass, classOf } from '../../shared/egress/address-class.ts'
import { parseIp } from '../../shared/egress/ip-address.ts'
import { testCertificate } from '../support/certificate.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { freePort } from '../support/free-port.ts'
import { connectClient } from '../support/mcp-client.ts'
import { forgetNotes, notesIn } from '../support/notes.ts'
import { accepted, type Received, startReceiver } from '../support/receiver.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

const ANY = { flags: ['--callback-policy', 'any'], env: { SERVICE_SHELL_POLICY: 'open' } }
const noop = { id: 'a', type: 'noop' }
const graphIdOf = async (answer: Response) => ((await answer.json()) as { graph_id: string }).graph_id

const isOver = ([, kind, , value]: NoteRow) => kind === 'callback' && typeof value === 'string'

const refusal = async (answer: Response) => [answer.status, ((await answer.json()) as { error: string }).error]

test('a graph that has ended is called back for, once, with how it ended', async () => {
  await using receiver = startReceiver()
  await using control = await startControl(ANY)
  const tasks = [
    noop,
    { id: 'b', type: 'shell', params: { script: 'exit 3' } },
    { ...noop, id: 'c', depends_on: ['b'] },
  ]
  const answer = await control.post({ name: 'nightly', callback: { url: receiver.url }, tasks })
  expect(answer.status).toBe(202)
  const graph_id = await graphIdOf(answer)
  const [{ headers, data }] = (await receiver.has(1)) as [(typeof receiver.received)[0]]
  expect(data).toEqual({
    ...{ event: 'graph_ended', graph_id, name: 'nightly', state: 'failed', seq: expect.any(Number) },
    counts: { success: 1, failed: 1, skipped: 1 },
  })
  expect(Object.fromEntries(headers)).toMatchObject({
    ...{ 'content-type': 'application/json', 'x-taskmill-event': 'graph_ended' },
    'x-taskmill-delivery': `${graph_id}-graph_ended`,
  })
  expect(headers.has('x-taskmill-signature')).toBe(false)
  await until(() => control.log.find(({ msg }) => msg === 'callback delivered'))
  const line = control.log.find(({ msg }) => msg === 'callback delivered')
  expect(line).toMatchObject({
    graph_id,
    event: 'graph_ended',
    tries: 1,
    url: `http://127.0.0.1:${receiver.port}/hook`,
  })
  const metrics = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
  expect(metrics).toContain('service_control_callbacks_total{outcome="delivered"} 1')
  expect(metrics).toContain('service_control_callbacks_waiting 0')
  expect(receiver.received.length).toBe(1)
})

test('each failed task is called back for, where that is asked for, and nothing else', async () => {
  await using receiver = startReceiver()
  await using control = await startControl(ANY)
  const fails = (id: string) => ({ id, type: 'shell', params: { script: 'exit 3' }, retry: 1 })
  const callback = { url: receiver.url, events: ['task_failed'] }
  const graph_id = await graphIdOf(await control.post({ callback, tasks: [noop, fails('b'), fails('c')] }))
  const received = await receiver.has(2)
  await control.allEnded()
  expect(received.map(({ data }) => data).sort((a, b) => (String(a.task_id) < String(b.task_id) ? -1 : 1))).toEqual(
    ['b', 'c'].map((task_id) => ({
      ...{ event: 'task_failed', graph_id, task_id, code: 'exit_nonzero', attempt: 2, seq: expect.any(Number) },
      error: 'task failed after all retries: command failed: exit status 3',
    })),
  )
  await control.post({ callback: { url: receiver.url, events: ['graph_ended', 'task_failed'] }, tasks: [noop] })
  await receiver.has(3)
  expect(receiver.received.map(({ data }) => data.event)).toEqual(['task_failed', 'task_failed', 'graph_ended'])
})

test('each approval that waits for its answer is called back for, also by the start after a kill', async () => {
  using temp = tempDir()
  const dataDir = join(temp.path, 'data')
  await using receiver = startReceiver()
  const callback = { url: receiver.url, events: ['approval_asked'] }
  const message = 'x'.repeat(600)
  const tasks = [
    { id: 'sure', type: 'approval', params: { message }, timeout: 3_600_000 },
    { id: 'mute', type: 'approval' },
    { id: 'later', type: 'approval', depends_on: ['mute'] },
  ]
  await using first = await startControl({ ...ANY, dataDir })
  const graph_id = await graphIdOf(await first.post({ name: 'release', callback, tasks }))
  // They come on two connections, in any order.
  const inOrder = (all: readonly Received[]) =>
    all.map(({ data }) => data).sort((a, b) => Number(a.seq) - Number(b.seq))
  const received = inOrder(await receiver.has(2))
  const { waiting } = await first.get('sure')
  const common = { event: 'approval_asked', graph_id, name: 'release', seq: expect.any(Number) }
  expect(received).toEqual([
    { ...common, task_id: 'sure', message: `${'x'.repeat(499)}…`, until: waiting!.until! },
    { ...common, task_id: 'mute' },
  ])
  await using stream = await EventStreamClient.open(`${first.url}/graphs/${graph_id}/events?after=0`)
  const isOfSure = (event: object) => 'task_id' in event && event.task_id === 'sure'
  expect((await stream.once((events) => events.some(isOfSure))).find(isOfSure)!.seq).toBe(Number(received[0]!.seq))
  await first.stop('SIGKILL')
  forgetNotes(dataDir) // as if the service had not come that far
  await using second = await startControl({ ...ANY, dataDir })
  expect(inOrder((await receiver.has(4)).slice(2))).toEqual(received)
  await until(
    () => second.get('mute'),
    ({ waiting }) => waiting?.reason === 'approval',
  )
  await second.fetch('/tasks/mute/approve', { method: 'POST', body: '{"who": "ada"}' })
  expect((await receiver.has(5)).at(-1)!.data.task_id).toBe('later')
})

describe('seq is the number of the event', () => {
  const tasks = [noop, { id: 'b', type: 'shell', params: { script: 'exit 3' }, retry: 1 }]
  /** The numbers of the event that `b` failed, and of the event that its graph ended. */
  const numbersIn = async (control: Control, graphId: string) => {
    await using stream = await EventStreamClient.open(`${control.url}/graphs/${graphId}/events?after=0&until=ended`)
    const events = await stream.ended()
    const failed = events.find((event) => event.event === 'task_changed' && event.status === 'failed')
    return { task_failed: failed?.seq, graph_ended: events.find(({ event }) => event === 'graph_ended')?.seq }
  }
  const numbersOf = (received: readonly Received[]) =>
    Object.fromEntries(received.map(({ data }) => [data.event, data.seq]))

  test('of a graph that ends, also with a task that was deleted', async () => {
    await using receiver = startReceiver()
    await using control = await startControl(ANY)
    using gate = new Gate()
    const callback = { url: receiver.url, events: ['graph_ended', 'task_failed'] }
    const first = await graphIdOf(await control.post({ callback, tasks }))
    expect(numbersOf(await receiver.has(2))).toEqual(await numbersIn(control, first))
    const second = await graphIdOf(await control.post({ callback, tasks: [gate.task('runs'), ...tasks] }))
    await control.ended('b')
    await control.fetch('/tasks/runs', { method: 'DELETE' })
    gate.open()
    expect(numbersOf((await receiver.has(4)).slice(2))).toEqual(await numbersIn(control, second))
  })

  test('that a start makes up for', async () => {
    using temp = tempDir()
    const dataDir = join(temp.path, 'data')
    await using receiver = startReceiver()
    const callback = { url: receiver.url, events: ['graph_ended', 'task_failed'] }
    await using first = await startControl({ ...ANY, dataDir })
    const graphId = await graphIdOf(await first.post({ callback, tasks }))
    await receiver.has(2)
    await first.fetch('/tasks/a', { method: 'DELETE' }) // the last change of a task comes after the end of the graph
    await first.stop('SIGKILL')
    forgetNotes(dataDir) // as if the service had not come that far
    await using second = await startControl({ ...ANY, dataDir })
    const numbers = numbersOf((await receiver.has(4)).slice(2))
    expect(numbers).toEqual(numbersOf(receiver.received.slice(0, 2)))
    expect(numbers).toEqual(await numbersIn(second, graphId))
  })
})

test('with a secret it is signed, as the example of the documentation checks it', async () => {
  using temp = tempDir()
  const secretFile = join(temp.path, 'secret')
  writeFileSync(secretFile, 'sesame\n', { mode: 0o600 })
  await using receiver = startReceiver()
  await using control = await startControl({ flags: [...ANY.flags, '--callback-secret-file', secretFile] })
  await control.post({ callback: { url: receiver.url }, tasks: [noop] })
  const [{ headers, body }] = (await receiver.has(1)) as [(typeof receiver.received)[0]]
  const page = readFileSync(join(import.meta.dir, '../../docs/http.md'), 'utf8')
  const [, code] = /```ts\n(export function isFromTaskmill[\s\S]*?)```/.exec(page)!
  const module = join(temp.path, 'verify.ts')
  writeFileSync(module, `import { createHmac, timingSafeEqual } from 'node:crypto'\n${code}`)
  const { isFromTaskmill } = await import(module)
  const signature = headers.get('x-taskmill-signature')
  expect(signature).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/)
  expect(isFromTaskmill(signature, body, 'sesame')).toBe(true)
  expect(isFromTaskmill(signature, `${body} `, 'sesame')).toBe(false)
  expect(isFromTaskmill(signature, body, 'other')).toBe(false)
  expect(isFromTaskmill(signature?.replace(/t=\d+/, 't=1'), body, 'sesame')).toBe(false)
})

test('a receiver that fails, redirects, hangs up or is not there gets it again, under the same id', async () => {
  await using elsewhere = startReceiver()
  await using receiver = startReceiver((_, count) => {
    if (count === 1) return new Response('later', { status: 503 })
    return count === 2 ? Response.redirect(elsewhere.url, 307) : new Response('x'.repeat(10_000_000))
  })
  await using control = await startControl(ANY)
  await control.post({ callback: { url: receiver.url }, tasks: [noop] })
  const received = await receiver.has(3)
  expect(new Set(received.map(({ headers }) => headers.get('x-taskmill-delivery'))).size).toBe(1)
  await until(() => control.log.filter(({ msg }) => String(msg).startsWith('callback')).length, 3)
  expect(control.log.filter(({ msg }) => String(msg).startsWith('callback'))).toMatchObject([
    { msg: 'callback failed', cause: 'answered 503', retry_in_ms: 1_000 },
    { msg: 'callback failed', cause: 'answered 307', retry_in_ms: 2_000 },
    { msg: 'callback delivered', tries: 3 },
  ])
  expect(elsewhere.received.length).toBe(0)
})

test('what is no HTTP, or closes, counts as a failure and no more', async () => {
  const says = ['SSH-2.0-x\r\n'.repeat(2_000), 'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n']
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.end(says.shift() ?? ''))
  }).listen(0, '127.0.0.1')
  await until(
    () => server.address(),
    (address) => address !== null,
  )
  await using control = await startControl(ANY)
  const { port } = server.address() as { port: number }
  await control.post({ callback: { url: `http://127.0.0.1:${port}` }, tasks: [noop] })
  await until(
    () => control.log.filter(({ msg }) => String(msg).startsWith('callback')).map(({ msg, cause }) => [msg, cause]),
    (lines) => lines.length === 2,
  ).then((lines) =>
    expect(lines).toEqual([
      ['callback failed', 'the answer is no HTTP'],
      ['callback delivered', undefined],
    ]),
  )
  server.close()
})

describe('over TLS', () => {
  const ended = (control: Control) => until(() => control.log.find(({ msg }) => String(msg).startsWith('callback')))

  test('the certificate is checked; NODE_EXTRA_CA_CERTS adds an authority', async () => {
    using temp = tempDir()
    const { tls, authorityPath } = testCertificate(temp.path)
    await using receiver = startReceiver(accepted, tls)
    const callback = { url: receiver.url }
    await using wary = await startControl(ANY)
    await wary.post({ callback, tasks: [noop] })
    expect(await ended(wary)).toMatchObject({ msg: 'callback failed', cause: 'unable to verify the first certificate' })
    expect(receiver.received).toEqual([])
    await using trusting = await startControl({ ...ANY, env: { ...ANY.env, NODE_EXTRA_CA_CERTS: authorityPath } })
    await trusting.post({ callback, tasks: [noop] })
    expect(await ended(trusting)).toMatchObject({ msg: 'callback delivered' })
    expect(receiver.received[0]!.data).toMatchObject({ event: 'graph_ended', state: 'success' })
    const task = await trusting.run({ type: 'http', params: { url: receiver.url, method: 'POST', body: '{}' } })
    expect(task.status).toBe('success')
  })

  test('a certificate for another name is refused', async () => {
    using temp = tempDir()
    const { tls, authorityPath } = testCertificate(temp.path)
    await using receiver = startReceiver(accepted, tls)
    await using control = await startControl({ ...ANY, env: { NODE_EXTRA_CA_CERTS: authorityPath } })
    await control.post({ callback: { url: receiver.url.replace('127.0.0.1', 'localhost') }, tasks: [noop] })
    const { msg, cause } = (await ended(control))!
    expect([msg, cause]).toEqual(['callback failed', expect.stringContaining("does not match certificate's altnames")])
    expect(receiver.received).toEqual([])
  })
})

describe('survives', () => {
  const restart = async (control: Control): Promise<Control> => {
    await control.stop('SIGKILL')
    return startControl({ ...ANY, dataDir: control.dataDir })
  }

  test('a kill between two tries', async () => {
    using temp = tempDir()
    const port = await freePort()
    await using first = await startControl({ ...ANY, dataDir: join(temp.path, 'data') })
    const callback = { url: `http://127.0.0.1:${port}/`, events: ['graph_ended', 'task_failed'] }
    const tasks = [noop, { id: 'b', type: 'shell', params: { script: 'exit 1' } }]
    await first.post({ callback, tasks })
    await until(
      () => first.log.filter(({ msg }) => msg === 'callback failed').length,
      (failed) => failed >= 2,
    )
    await first.stop('SIGKILL') // before anybody listens: it tries again by itself
    const received: string[] = []
    using server = Bun.serve({
      port,
      hostname: '127.0.0.1',
      fetch(request) {
        received.push(request.headers.get('x-taskmill-event')!)
        return new Response()
      },
    })
    await using second = await restart(first)
    await until(() => received.length, 2)
    expect(received.sort()).toEqual(['graph_ended', 'task_failed'])
    await until(() => second.log.filter(({ msg }) => msg === 'callback delivered').length, 2)
    await using third = await restart(second)
    await third.submit([{ ...noop, id: 'later' }])
    await third.ended('later')
    expect(received.length).toBe(2)
    expect(server.port).toBe(port)
  })

  test('a kill before it was written down', async () => {
    using temp = tempDir()
    const dataDir = join(temp.path, 'data')
    await using receiver = startReceiver()
    await using first = await startControl({ ...ANY, dataDir })
    await first.post({ callback: { url: receiver.url }, tasks: [noop] })
    await receiver.has(1)
    await until(() => notesIn(dataDir).some(isOver), Boolean)
    await first.stop('SIGKILL')
    forgetNotes(dataDir) // as if the service had not come that far
    await using second = await startControl({ ...ANY, dataDir })
    const [one, two] = await receiver.has(2)
    expect(two!.body).toBe(one!.body)
    expect(two!.headers.get('x-taskmill-delivery')).toBe(one!.headers.get('x-taskmill-delivery'))
    expect((await second.fetch('/health')).status).toBe(200)
  })

  test('a kill while the graph runs, and a stop', async () => {
    using temp = tempDir()
    const go = join(temp.path, 'go')
    await using receiver = startReceiver()
    await using first = await startControl({ ...ANY, dataDir: join(temp.path, 'data') })
    const tasks = [{ id: 'a', type: 'shell', params: { script: waitFor(go) } }]
    await first.post({ name: 'n', callback: { url: receiver.url }, tasks })
    await first.reached('a', 'running')
    await using second = await restart(first)
    await second.reached('a', 'running')
    expect(receiver.received.length).toBe(0)
    writeFileSync(go, '')
    const [{ data }] = (await receiver.has(1)) as [(typeof receiver.received)[0]]
    expect(data).toMatchObject({ name: 'n', state: 'success', counts: { success: 1 } })
    await until(() => notesIn(second.dataDir).some(isOver), Boolean) // a stop before that may repeat the delivery
    expect(await second.stop()).toBe(0)
    await using third = await startControl({ ...ANY, dataDir: second.dataDir })
    await third.submit([{ ...noop, id: 'later' }])
    await third.ended('later')
    expect(receiver.received.length).toBe(1)
  })
})

test('a receiver that hangs holds up no other', async () => {
  await using hangs = startReceiver(() => new Promise(() => {}))
  await using receiver = startReceiver()
  await using control = await startControl(ANY)
  const startedAt = performance.now()
  for (let i = 0; i < 40; i++)
    await control.post({ callback: { url: hangs.url }, tasks: [{ ...noop, id: `hangs-${i}` }] })
  await control.post({ callback: { url: receiver.url }, tasks: [{ ...noop, id: 'fine' }] })
  await receiver.has(1)
  // Four at a time, and each is given up after ten seconds.
  const rounds = 1 + Math.floor((performance.now() - startedAt) / 10_000)
  expect(hangs.received.length).toBeLessThanOrEqual(4 * rounds)
})

test('agents submit graphs with a callback, too', async () => {
  await using receiver = startReceiver()
  await using control = await startControl(ANY)
  await using mcp = await connectClient(control.url)
  await mcp.call('submit_graph', { tasks: [noop], callback: { url: receiver.url } })
  await receiver.has(1)
  const input = { task_graph: { tasks: [{ ...noop, id: 'b' }], callback: { url: receiver.url } } }
  const action = { kind: 'task_graph.submit', input }
  expect((await control.fetch('/adapters/actions', { method: 'POST', body: JSON.stringify({ action }) })).status).toBe(
    202,
  )
  await receiver.has(2)
})

describe('refused at submission', () => {
  let control: Control
  beforeAll(async () => {
    control = await startControl()
  })
  afterAll(() => control.dispose())

  const remedy = 'allow it with --callback-policy any'
  const local = (host: string, is: AddressClass | `${string}, ${AddressClass}`) =>
    `callback.url: ${host} (${is}) is no public address (${remedy})`
  test.each([
    ['http://127.0.0.1:1/x', local('127.0.0.1', 'loopback')],
    ['http://localhost/', local('localhost', '127.0.0.1, loopback')],
    ['http://[::ffff:169.254.169.254]/', local('169.254.169.254', 'metadata')],
    ['http://192.168.0.1/', local('192.168.0.1', 'private')],
    ['http://user:secret@example.com/', 'invalid JSON: callback.url: expected an address without user and password'],
    ['ftp://example.com/', 'invalid JSON: callback.url: expected an http: or https: address'],
    ['http://', 'invalid JSON: callback.url: expected an http: or https: address'],
  ])('%s', async (url, error) => {
    expect(await refusal(await control.post({ callback: { url }, tasks: [noop] }))).toEqual([400, error])
    expect(await control.list()).toEqual([])
  })

  test('unknown fields and events', async () => {
    const url = 'https://example.com'
    const refused = async (callback: object) => refusal(await control.post({ callback, tasks: [noop] }))
    expect(await refused({ url, event: [] })).toEqual([
      ...[400, 'unknown field "callback.event" in graph (did you mean "callback.events"?)'],
    ])
    expect(await refused({ url, events: ['ended'] })).toEqual([
      ...[400, 'invalid JSON: callback.events: expected names of graph_ended, task_failed, approval_asked'],
    ])
  })
})

/** A name, not `localhost`, that stands for an address of this machine or its network. */
const localName = await (async () => {
  for (const name of ['ip6-localhost', 'ip6-loopback', hostname()]) {
    const addresses = await lookup(name, { all: true }).catch(() => [])
    if (addresses.length > 0 && addresses.every(({ address }) => classOf(parseIp(address)!) !== 'public')) return name
  }
  return undefined
})()
const unlessNone = localName === undefined ? ' (skipped: this machine has no such name)' : ''

test.skipIf(localName === undefined)(
  `a name that resolves to a private address is not called${unlessNone}`,
  async () => {
    await using receiver = startReceiver()
    await using control = await startControl()
    const url = `http://${localName}:${receiver.port}/`
    expect((await control.post({ callback: { url }, tasks: [noop] })).status).toBe(202)
    await until(
      () => control.log.find(({ msg }) => msg === 'callback failed'),
      (line) => /is no public address/.test(String(line?.cause)),
    )
    expect(receiver.received.length).toBe(0)
  },
)
