/** Which address of a name is connected to, how many are tried, and how long a lookup may take. */
import { describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import {
  Dialer,
  MAX_ADDRESSES,
  MAX_TASK_LOOKUPS,
  MAX_TRIED_ADDRESSES,
  type Resolve,
} from '../../../runtime/egress/dial.ts'
import { RulesInForce } from '../../../runtime/egress/rules-in-force.ts'
import { parseIp } from '../../../shared/egress/ip-address.ts'
import { parseRules } from '../../../shared/egress/rules.ts'
import { TestServer } from '../../support/egress.ts'
import { until } from '../../support/until.ts'

const NO_SERVICES = { isOfService: () => false }
const rules = (...allow: string[]) => new RulesInForce([{ allow: parseRules(allow, 'allow'), deny: [] }], NO_SERVICES)

const dialed = async (resolve: Resolve, inForce: RulesInForce, port: number) => {
  const found = await new Dialer(resolve).forTask(inForce)({ host: { name: 'a.example' }, port })
  if (found.kind === 'connected') found.server.destroy()
  return found
}

test('a name is looked up as it was checked, without a search list', async () => {
  const asked: string[] = []
  const resolve = async (name: string) => {
    asked.push(name)
    return []
  }
  await dialed(resolve, rules('a.example'), 80)
  expect(asked).toEqual(['a.example.'])
})

test('a connection that reaches a service of ours only when it is made is ended before it carries a byte', async () => {
  const received: string[] = []
  await using server = await TestServer.start((socket) => {
    socket.on('data', (bytes) => received.push(String(bytes)))
    socket.on('end', () => socket.end())
  })
  const asked: (string | undefined)[] = []
  const services = {
    isOfService: (_: unknown, port: number, from?: string) => {
      asked.push(from)
      return port === server.port && from !== undefined
    },
  }
  const inForce = new RulesInForce([{ allow: parseRules(['127.0.0.1'], 'allow'), deny: [] }], services)
  const target = { host: { address: parseIp('127.0.0.1')! }, port: server.port }
  expect(await new Dialer().forTask(inForce)(target)).toEqual({ kind: 'refused', refusal: { kind: 'never' } })
  expect(asked).toEqual([undefined, '127.0.0.1'])
  expect(received).toEqual([])
})

describe('a name with several addresses', () => {
  test('is connected to at the first that answers', async () => {
    await using server = await TestServer.start(() => {})
    const found = await dialed(async () => ['127.0.0.2', '127.0.0.1'], rules('a.example', '127.0.0.0/8'), server.port)
    expect(found).toMatchObject({ kind: 'connected', address: '127.0.0.1', rule: '127.0.0.0/8' })
  })

  test('is connected to at one that is allowed, whatever the others are', async () => {
    await using server = await TestServer.start(() => {})
    const resolve = async () => ['10.0.0.1', '169.254.169.254', '::1', 'nonsense', '127.0.0.1']
    const found = await dialed(resolve, rules('a.example', '127.0.0.1'), server.port)
    expect(found).toMatchObject({ kind: 'connected', address: '127.0.0.1' })
  })

  test('is tried at some of them only', async () => {
    await using server = await TestServer.start(() => {})
    const closed = Array.from({ length: MAX_TRIED_ADDRESSES }, (_, i) => `127.0.0.${i + 2}`)
    const some = [...closed.slice(1), '127.0.0.1']
    const inForce = rules('a.example', '127.0.0.0/8')
    expect(await dialed(async () => some, inForce, server.port)).toMatchObject({ kind: 'connected' })
    const why = `${closed.at(-1)} cannot be connected to (ECONNREFUSED)`
    expect(await dialed(async () => [...closed, '127.0.0.1'], inForce, server.port)).toMatchObject({
      kind: 'failed',
      why,
    })
  })

  test('is checked at some of them only', async () => {
    await using server = await TestServer.start(() => {})
    const others = Array.from({ length: MAX_ADDRESSES }, (_, i) => `10.0.0.${i}`)
    const inForce = rules('a.example', '127.0.0.1')
    expect(await dialed(async () => [...others.slice(1), '127.0.0.1'], inForce, server.port)).toMatchObject({
      kind: 'connected',
    })
    expect(await dialed(async () => [...others, '127.0.0.1'], inForce, server.port)).toMatchObject({
      ...{ kind: 'refused', refusal: { kind: 'class', addressClass: 'private' } },
    })
  })
})

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'))

test.skipIf(!hasIpv6)('an address of IPv6 is connected to', async () => {
  using listener = Bun.listen({ hostname: '::1', port: 0, socket: { data() {} } })
  const found = await dialed(async () => ['::1'], rules('a.example', '[::1]'), listener.port)
  expect(found).toMatchObject({ kind: 'connected', address: '::1', rule: '[::1]' })
})

test('a lookup that fails, or finds nothing, is a failure and no refusal', async () => {
  const failing = async () => {
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
  }
  expect(await dialed(failing, rules('a.example'), 80)).toEqual({
    ...{ kind: 'failed', why: 'the name cannot be looked up (ENOTFOUND)', rule: 'a.example' },
  })
  expect(await dialed(async () => [], rules('a.example'), 80)).toMatchObject({
    kind: 'failed',
    why: 'the name has no address',
  })
})

test('lookups that take too long fail, those that wait for them too, and are then not begun', async () => {
  const asked: string[] = []
  const never = Promise.withResolvers<string[]>()
  const resolve = (name: string) => {
    asked.push(name)
    return never.promise
  }
  const dial = new Dialer(resolve, { lookupMs: 200, connectMs: 200 }).forTask(rules('*.example'))
  const all = Array.from({ length: MAX_TASK_LOOKUPS + 3 }, (_, i) =>
    dial({ host: { name: `n${i}.example` }, port: 80 }),
  )
  for (const found of await Promise.all(all)) {
    expect(found).toMatchObject({ kind: 'failed', why: 'the name cannot be looked up (no answer in time)' })
  }
  expect(asked).toHaveLength(MAX_TASK_LOOKUPS)
  never.resolve(['10.0.0.1'])
  const next = dial({ host: { name: 'next.example' }, port: 80 })
  await until(() => asked.at(-1), 'next.example.')
  expect(await next).toMatchObject({ kind: 'refused' })
  expect(asked).toHaveLength(MAX_TASK_LOOKUPS + 1)
})
