/** The bounds of a proxy: bytes, connections, time, events; and what is left of a task whose service is started again. */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { Dialer, MAX_TASK_LOOKUPS } from '../../../runtime/egress/dial.ts'
import { Egress } from '../../../runtime/egress/egress.ts'
import { ServiceAddresses } from '../../../runtime/egress/service-addresses.ts'
import { SPARE_SESSIONS } from '../../../runtime/egress/task-proxy.ts'
import { answering, TestClient, TestProxy, TestServer } from '../../support/egress.ts'
import { until } from '../../support/until.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
const echo = (socket: Socket) => void socket.pipe(socket)
const asking = (server: TestServer) => `CONNECT 127.0.0.1:${server.port} HTTP/1.1\r\n\r\n`
const CONNECTED = '\r\n\r\n'

test('max_bytes: what is beyond it is not passed on, all connections are cut, and there are no more', async () => {
  await using server = await TestServer.start(echo)
  await using proxy = new TestProxy({ rules: { allow: ['127.0.0.1'], max_bytes: 1_000 } })
  const [other, client] = [proxy.client(), proxy.client()]
  for (const one of [other, client]) {
    one.write(asking(server))
    await one.upTo(CONNECTED)
  }
  client.write('x'.repeat(400))
  await client.upTo('x'.repeat(400))
  client.write('y'.repeat(201))
  expect(await client.rest()).toBe('')
  expect(await other.rest()).toBe('')
  expect(server.received).toBe('x'.repeat(400))
  expect(proxy.usage).toEqual({ connections_allowed: 2, connections_refused: 0, bytes_sent: 400, bytes_received: 400 })
  expect(proxy.events.map(({ data }) => data.cut)).toEqual(['max_bytes', 'max_bytes'])
  expect(await proxy.exchange(asking(server))).toContain('the task has used sandbox.network.max_bytes')
})

test('max_connections: one more is refused with the reason, and a crowd is closed at once', async () => {
  await using server = await TestServer.start(echo)
  await using proxy = new TestProxy({ rules: { allow: ['127.0.0.1'], max_connections: 2 } })
  const open = [proxy.client(), proxy.client()]
  for (const one of open) {
    one.write(asking(server))
    await one.upTo(CONNECTED)
  }
  expect(await proxy.exchange(asking(server))).toContain('the task has sandbox.network.max_connections open')
  const crowd = Array.from({ length: SPARE_SESSIONS + 10 }, () => proxy.client())
  await until(
    () => crowd.filter(({ hasEnded }) => hasEnded).length,
    (count) => count >= 10,
  )
  expect(proxy.events.at(-1)?.data).toEqual({ reason: 'max_connections' })
  for (const one of [...open, ...crowd]) one.socket.destroy()
  await until(() => proxy.egress.totals.open, 0)
  const again = proxy.client()
  again.write(asking(server))
  expect(await again.upTo(CONNECTED)).toStartWith('HTTP/1.1 200')
  again.socket.destroy()
})

test('a task that takes all it gets leaves the others their own places, and holds no more descriptors', async () => {
  await using server = await TestServer.start(echo)
  const rules = { allow: ['127.0.0.1'], max_connections: 2_000 }
  const times = { messageMs: 600_000, idleMs: 600_000 } // clients that say nothing keep their places
  await using proxy = new TestProxy({ rules, maxConnections: 400, maxTasks: 4, times })
  const { egress } = proxy
  const descriptors = () => readdirSync('/proc/self/fd').length
  const before = descriptors()
  const hostile = Array.from({ length: 240 }, () => proxy.client()) // they say nothing
  await until(() => egress.totals.open, 240)
  for (let i = 0; i < 4; i++) hostile.push(...Array.from({ length: 100 }, () => proxy.client()))
  await until(
    () => hostile.filter(({ hasEnded }) => hasEnded).length,
    (ended) => ended >= 640 - 250 - SPARE_SESSIONS,
  )
  expect(egress.totals.open).toBe(250) // its own 50, and the common 200
  const rest = hostile.filter(({ hasEnded }) => !hasEnded).length
  expect(descriptors() - before).toBeLessThanOrEqual(2 * rest + 10) // both ends are of this process
  const other = proxy.open('task-2', 2)
  const ask = () => {
    const client = new TestClient(connect({ path: other, allowHalfOpen: true }))
    client.write(asking(server))
    return client
  }
  const mine = Array.from({ length: 50 }, ask)
  for (const client of mine) expect(await client.upTo(CONNECTED)).toStartWith('HTTP/1.1 200')
  mine[7]!.write('hello')
  await mine[7]!.upTo('hello')
  expect(await ask().upTo(CONNECTED)).toContain('403')
  for (const client of [...hostile, ...mine]) client.socket.destroy()
}, 30_000)

test('a client that makes up its mind too slowly is cut, and told once it has named a host', async () => {
  const times = { messageMs: 2_000, idleMs: 60_000 }
  await using server = await TestServer.start((socket) => socket.write('secret'))
  await using proxy = new TestProxy({
    rules: { allow: [`a.example:${server.port}`, '127.0.0.1'] },
    names: { 'a.example': ['127.0.0.1'] },
    times,
  })
  for (const text of ['', 'GET http://a', '\x05\x01', '\x05\x01\x00\x05\x01'])
    expect(await proxy.exchange(text)).not.toContain('HTTP')
  expect(proxy.events).toEqual([])
  expect(await proxy.exchange(`CONNECT a.example:${server.port} HTTP/1.1\r\n\r\n`)).toEndWith('established\r\n\r\n')
  expect(await proxy.exchange(`CONNECT a.example:${server.port} HTTP/1.1\r\n\r\n\x16\x03\x01`)).toEndWith(
    'established\r\n\r\n',
  )
  expect(proxy.events.map(({ data }) => data.reason)).toEqual(['protocol', 'protocol'])
})

test('a connection that carries nothing for long is cut', async () => {
  await using server = await TestServer.start(echo)
  await using proxy = new TestProxy({ rules: { allow: ['127.0.0.1'] }, times: { messageMs: 10_000, idleMs: 4_000 } })
  const client = proxy.client()
  client.write(asking(server))
  await client.upTo(CONNECTED)
  await client.rest()
  await until(() => server.sockets.size, 0)
})

test('lookups of a task wait for each other: a slow name server holds only some of them', async () => {
  let [now, most] = [0, 0]
  const go = Promise.withResolvers<void>()
  const resolve = async () => {
    most = Math.max(most, ++now)
    await go.promise
    now--
    return ['10.0.0.1']
  }
  await using proxy = new TestProxy({ rules: { allow: ['*'] }, resolve })
  const answers = Array.from({ length: 20 }, (_, i) => proxy.exchange(`CONNECT n${i}.example:1 HTTP/1.1\r\n\r\n`))
  await until(() => now, MAX_TASK_LOOKUPS)
  go.resolve()
  for (const answer of answers) expect(await answer).toContain('403')
  expect(most).toBe(MAX_TASK_LOOKUPS)
})

test('a service that starts again serves the socket at its path, with the events and totals of before', async () => {
  await using server = await TestServer.start(answering(OK))
  const rules = { allow: ['127.0.0.1'], max_bytes: 500 }
  await using proxy = new TestProxy({ rules })
  const get = `GET http://127.0.0.1:${server.port}/ HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`
  await proxy.exchange(get)
  await proxy.exchange('CONNECT 10.0.0.1:1 HTTP/1.1\r\n\r\n')
  const before = proxy.usage
  const { socketPath, events } = proxy
  proxy.egress.stop()
  expect(existsSync(socketPath)).toBe(false)
  // A service that is killed leaves its file, and those of tasks that have ended since.
  writeFileSync(socketPath, '')
  writeFileSync(join(dirname(socketPath), 'other'), '')
  const egress = new Egress({
    ...{ directory: dirname(socketPath), bounds: { allow: undefined, deny: [] }, maxConnections: 9, maxTasks: 1 },
    ...{
      services: new ServiceAddresses(),
      dialer: new Dialer(),
      authority: proxy.authority,
      onFault: () => {},
      onUseFault: () => {},
    },
  })
  const task = { task_id: 'task-1', ordinal: 1, rules: { ...rules, max_connections: 9 }, earlier: [...events] }
  expect(egress.open({ ...task, onEvent: () => {}, readSecret: () => Buffer.of() })).toBe(socketPath)
  egress.removeStrays()
  expect(readdirSync(dirname(socketPath)).sort()).toEqual(['1', '1.use'])
  expect(egress.useOf('task-1')?.usage).toEqual(before)
  expect(egress.useOf('task-1')?.firstRefusal).toContain('10.0.0.1:1')
  const client = connect(socketPath)
  client.write(get)
  server.received = ''
  await until(
    () => server.received,
    (text) => text.includes('GET'),
  )
  client.destroy()
  const used = egress.close('task-1')
  expect(used?.usage.connections_allowed).toBe(2)
  egress.forget('task-1')
  expect(readdirSync(dirname(socketPath))).toEqual([])
})
