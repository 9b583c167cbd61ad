/** The tools dns and tcp. Source: contract, Executors beyond the spec's tables and section 5. No name leaves this machine. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { startFullListener } from '../support/full-listener.ts'
import { until } from '../support/until.ts'

let control: Control
/** Counts who connects and who hangs up again. */
let server: Server
let port: number
let [connected, ended] = [0, 0]
beforeAll(async () => {
  control = await startControl()
  server = createServer((socket: Socket) => {
    connected++
    socket.on('error', () => {})
    socket.on('close', () => ended++)
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as { port: number }).port
})
afterAll(async () => {
  await control.dispose()
  server.close()
})

const failure = (error: unknown, code: string) => ({ status: 'failed', error, runtime: { error: { code } } })

describe('dns', () => {
  /** A name of the hosts file with one of its addresses. */
  const ownName = readFileSync('/etc/hosts', 'utf8')
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
    .find(([address, name]) => /^[\d.]+$/.test(address!) && name !== undefined && name !== 'localhost')

  test('ip is the default: the addresses of a name', async () => {
    const task = await control.run({ type: 'dns', params: { name: 'localhost' } })
    expect(task).toMatchObject({ type: 'os', tool_name: 'dns', status: 'success' })
    const { addrs, ...rest } = task.result as { addrs: string[] }
    expect(rest as object).toEqual({ name: 'localhost', record: 'ip' })
    expect(addrs.length).toBeGreaterThan(0)
    expect(addrs.filter((address) => address !== '127.0.0.1' && address !== '::1')).toEqual([])
    expect(new Set(addrs).size).toBe(addrs.length)
  })

  test.skipIf(ownName === undefined)('the hosts file of the system counts', async () => {
    const [address, name] = ownName!
    const task = await control.run({ type: 'os', tool_name: 'dns', input: { name, record: 'ip' } })
    expect(task.result).toMatchObject({ name, record: 'ip', addrs: expect.arrayContaining([address]) })
  })

  test('a name that does not exist fails the task', async () => {
    const task = await control.run({ type: 'dns', params: { name: 'no..name' } })
    expect(task).toMatchObject(failure('dns ip no..name: no such name', 'external_failure'))
    expect(task).not.toHaveProperty('result')
  })

  test.each([[undefined], [null], [{}], [{ name: '' }], [{ name: null, record: 'mx' }]])(
    'name is required: %j',
    async (params) => {
      expect(await control.run({ type: 'dns', params })).toMatchObject(failure('name is required', 'invalid_input'))
    },
  )

  test.each([
    [{ name: 7 }, 'name: expected host name'],
    [{ name: 'a b' }, 'name: expected host name'],
    [{ name: 'a\u0000b' }, 'name: expected host name'],
    [{ name: 'x'.repeat(255) }, 'name: expected host name'],
    [{ name: 'localhost', record: 'aaaa' }, 'record: expected ip, txt, cname or mx'],
    [{ name: 'localhost', record: '' }, 'record: expected ip, txt, cname or mx'],
    [{ name: 'localhost', record: ['mx'] }, 'record: expected ip, txt, cname or mx'],
    [['localhost'], 'expected object'],
    ['localhost', 'expected object'],
  ])('bad parameters name the field: %j', async (params, detail) => {
    const error = expect.stringContaining(`parse dns params: ${detail}`)
    expect(await control.run({ type: 'dns', params })).toMatchObject(failure(error, 'invalid_input'))
  })
})

describe('tcp', () => {
  test.each(['127.0.0.1', 'localhost'])('connects to %s and hangs up', async (host) => {
    const before = connected
    const address = `${host}:${port}`
    const task = await control.run({ type: 'tcp', params: { address } })
    expect(task).toMatchObject({ type: 'os', tool_name: 'tcp', status: 'success' })
    expect(task.result).toEqual({ ok: true, address })
    // The kernel connects; whoever listens may be told later.
    await until(
      () => [connected, ended],
      ([connects, ends]) => connects === before + 1 && ends === connects,
    )
  })

  test('a refused connection fails the task', async () => {
    const address = `127.0.0.1:${await freePort()}`
    const task = await control.run({ type: 'tcp', params: { address } })
    expect(task).toMatchObject(failure(`tcp ${address}: connection refused`, 'external_failure'))
    expect(task).not.toHaveProperty('result')
  })

  test('a host that cannot be resolved fails the task', async () => {
    const task = await control.run({ type: 'tcp', params: { address: 'no..host:80' } })
    expect(task).toMatchObject(failure('tcp no..host:80: no such host', 'external_failure'))
  })

  test('a server that does not answer fails the task after timeout_ms', async () => {
    using listener = await startFullListener()
    const task = await control.run({ type: 'tcp', params: { address: listener.address, timeout_ms: 60 } })
    const error = `tcp ${listener.address}: no connection within 60ms`
    expect(task).toMatchObject(failure(error, 'external_failure'))
  })

  test('the task’s own timeout and a cancel end the wait at once', async () => {
    using listener = await startFullListener()
    const params = { address: listener.address, timeout_ms: 60_000 }
    const late = await control.run({ type: 'tcp', params, timeout: 60 })
    expect(late).toMatchObject(failure('task timed out after 60ms', 'timeout'))
    await control.submit([{ id: 'waiting', type: 'tcp', params }])
    await control.reached('waiting', 'running')
    await control.fetch('/tasks/waiting/cancel', { method: 'POST' })
    expect((await control.ended('waiting')).status).toBe('cancelled')
  })

  test.each([[undefined], [null], [{}], [{ address: '' }], [{ address: null }]])(
    'address is required: %j',
    async (params) => {
      const error = 'address is required (host:port)'
      expect(await control.run({ type: 'tcp', params })).toMatchObject(failure(error, 'invalid_input'))
    },
  )

  test.each([
    [{ address: 80 }, 'address: expected string'],
    [{ address: 'localhost' }, 'address: expected host:port'],
    [{ address: '::1:80' }, 'address: expected host:port'],
    [{ address: 'localhost:0' }, 'address: expected a port from 1 to 65535'],
    [{ address: 'localhost:65536' }, 'address: expected a port from 1 to 65535'],
    [{ address: 'localhost:1', timeout_ms: 60_001 }, 'timeout_ms: expected integer from 1 to 60000'],
    [{ address: 'localhost:1', timeout_ms: 0 }, 'timeout_ms: expected integer from 1 to 60000'],
    [{ address: 'localhost:1', timeout_ms: 1.5 }, 'timeout_ms: expected integer from 1 to 60000'],
    [{ address: 'localhost:1', timeout_ms: '5' }, 'timeout_ms: expected integer from 1 to 60000'],
    [7, 'expected object'],
  ])('bad parameters name the field: %j', async (params, detail) => {
    const error = expect.stringContaining(`parse tcp params: ${detail}`)
    expect(await control.run({ type: 'tcp', params })).toMatchObject(failure(error, 'invalid_input'))
  })
})
