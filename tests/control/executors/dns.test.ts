/** Goal: each record comes in its own shape, each fault in plain words. Method: a DNS server that answers from a table. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { dns, joinedStrings } from '../../../control/executors/os/dns.ts'
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts'
import { testContext } from '../../support/executor-context.ts'
import { until } from '../../support/until.ts'

let server: DnsServer
beforeAll(async () => {
  server = await startDnsServer({
    'mill.test': {
      txt: [['v=spf1 -all'], ['grün'], [''], ['k'.repeat(255), 'ey']],
      mx: [
        { exchange: 'second.test', priority: 20 },
        { exchange: 'first-b.test', priority: 10 },
        { exchange: 'first-a.test', priority: 10 },
      ],
    },
    'www.mill.test': { cname: 'mill.test' },
    'broken.test': { rcode: 2 },
    'closed.test': { rcode: 5 },
    'silent.test': { isSilent: true },
  })
})
afterAll(() => server[Symbol.asyncDispose]())

const resolve = (input: object, context = testContext()) =>
  Promise.try(() => dns([server.address]).execute(input, context))

const failureOf = (answer: Promise<unknown>) => answer.then(String, ({ code, message }) => ({ code, message }))

describe('a text of several strings', () => {
  const full = 'x'.repeat(255)

  test.each([
    [[], []],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [[full], [full]],
    [
      [full, 'a', 'b'],
      [`${full}a`, 'b'],
    ],
    [
      ['a', full, full, '', 'b'],
      ['a', full + full, 'b'],
    ],
  ])('is joined where a string was full', (strings, texts) => {
    expect(joinedStrings(strings)).toEqual(texts)
  })
})

describe('dns', () => {
  test('txt: the texts in the order of the answer, long ones in one piece', async () => {
    const txt = ['v=spf1 -all', 'grün', '', `${'k'.repeat(255)}ey`]
    expect(await resolve({ name: 'mill.test', record: 'txt' })).toEqual({ name: 'mill.test', record: 'txt', txt })
  })

  test('mx: by priority, then by name', async () => {
    expect(await resolve({ name: 'mill.test', record: 'mx' })).toEqual({
      name: 'mill.test',
      record: 'mx',
      mx: [
        { exchange: 'first-a.test', priority: 10 },
        { exchange: 'first-b.test', priority: 10 },
        { exchange: 'second.test', priority: 20 },
      ],
    })
  })

  test('cname: the one there is', async () => {
    const expected = { name: 'www.mill.test', record: 'cname', cname: 'mill.test' }
    expect(await resolve({ name: 'www.mill.test', record: 'cname' })).toEqual(expected)
  })

  test('ip: asks the system, not the servers', async () => {
    const asked = server.asked.length
    expect(await resolve({ name: '127.0.0.1' })).toEqual({ name: '127.0.0.1', record: 'ip', addrs: ['127.0.0.1'] })
    expect(await resolve({ name: '::1', record: 'ip' })).toEqual({ name: '::1', record: 'ip', addrs: ['::1'] })
    expect(server.asked).toHaveLength(asked)
  })

  test.each([
    [{ name: 'nowhere.test', record: 'txt' }, 'dns txt nowhere.test: no txt record found'],
    [{ name: 'mill.test', record: 'cname' }, 'dns cname mill.test: no cname record found'],
    [{ name: 'www.mill.test', record: 'mx' }, 'dns mx www.mill.test: no mx record found'],
    [{ name: 'broken.test', record: 'mx' }, 'dns mx broken.test: the server failed to answer'],
    [{ name: 'closed.test', record: 'txt' }, 'dns txt closed.test: the server refuses to answer'],
    [{ name: 'a..b', record: 'mx' }, 'dns mx a..b: no mx record found'],
    [{ name: `${'x'.repeat(64)}.test`, record: 'mx' }, `dns mx ${'x'.repeat(64)}.test: no mx record found`],
    [{ name: 'no..name', record: 'ip' }, 'dns ip no..name: no such name'],
  ])('fails in plain words: %j', async (input, message) => {
    expect(await failureOf(resolve(input))).toEqual({ code: 'external_failure', message })
  })

  test('is ended by the signal while it waits for a server', async () => {
    const context = testContext()
    const answer = failureOf(resolve({ name: 'silent.test', record: 'txt' }, context))
    await until(
      () => server.asked,
      (asked) => asked.includes('silent.test'),
    )
    context.abort()
    expect(await answer).toEqual({ code: 'cancelled', message: 'dns txt silent.test was ended' })
    expect(context.calls).toEqual(['begin'])
  })
})
