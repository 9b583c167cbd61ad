/** Requests to a checked address: no second lookup, the names of the host, no proxy, the next address. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { AddressGuard, AddressRefused, MAX_ADDRESSES } from '../../../control/outbound/address-guard.ts'
import { pinnedFetch } from '../../../control/outbound/pinned-fetch.ts'
import { parseRule } from '../../../shared/egress/rule.ts'
import { testCertificate } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { tempDir } from '../../support/temp.ts'

let server: Bun.Server<undefined>
/** Listens at another address of this machine, on the same port. */
let inner: Bun.Server<undefined>
let innerRequests = 0
beforeAll(() => {
  server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch: async (request) =>
      Response.json({ ...Object.fromEntries(request.headers), url: request.url, body: await request.text() }),
  })
  inner = Bun.serve({
    ...{ hostname: '127.0.0.2', port: server.port! },
    fetch() {
      innerRequests++
      return new Response('secret')
    },
  })
})
afterAll(async () => {
  await server.stop(true)
  await inner.stop(true)
})

/** A guard that also allows `addresses`, and answers lookups one after the other. */
function guardWith({ addresses = ['127.0.0.1'], answers = [] as readonly (readonly string[])[] } = {}) {
  const asked: string[] = []
  const guard = new AddressGuard({
    ...{ policy: 'public', flag: 'http-policy', exceptions: addresses.map(parseRule) },
    async addressesOf(name) {
      asked.push(name)
      return answers[Math.min(asked.length, answers.length) - 1] ?? []
    },
  })
  return { guard, asked }
}

const get = (headers: Record<string, string> = {}) => ({
  ...{ method: 'GET', headers: new Headers(headers), body: null, signal: new AbortController().signal },
})
const post = { ...get(), method: 'POST', body: 'sent' }
const url = (host: string, path = '/') => new URL(`http://${host}:${server.port}${path}`)

describe('a name', () => {
  test('is looked up once, and the request goes to that address', async () => {
    const { guard, asked } = guardWith({ answers: [['127.0.0.1'], ['127.0.0.2']] })
    const answer = (await (await pinnedFetch(guard, url('Mill.EXAMPLE', '/path?query'), get())).json()) as {
      url: string
    }
    expect(answer).toMatchObject({ host: `mill.example:${server.port}` })
    expect(answer.url).toBe(`http://mill.example:${server.port}/path?query`)
    expect(asked).toEqual(['mill.example'])
    expect(innerRequests).toBe(0)
  })

  test('with a dot at its end is looked up as written: no search domain is added', async () => {
    const { guard, asked } = guardWith({ answers: [['127.0.0.1']] })
    expect((await pinnedFetch(guard, url('mill.example.'), get())).status).toBe(200)
    expect(asked).toEqual(['mill.example.'])
  })

  test('that answers with another address later is refused then', async () => {
    const { guard } = guardWith({ answers: [['127.0.0.1'], ['127.0.0.2']] })
    await pinnedFetch(guard, url('mill.example'), get())
    await expect(pinnedFetch(guard, url('mill.example'), get())).rejects.toThrow(
      'mill.example (127.0.0.2, loopback) is no public address (allow it with --http-policy any)',
    )
    expect(innerRequests).toBe(0)
    expect(guard.refusedByClass.get('loopback')).toBe(1)
  })

  test('with allowed and other addresses goes to an allowed one', async () => {
    const { guard } = guardWith({ answers: [['127.0.0.2', '10.0.0.1', '127.0.0.1']] })
    expect((await pinnedFetch(guard, url('mill.example'), get())).status).toBe(200)
    expect(innerRequests).toBe(0)
  })

  test('with a server at its second address reaches that one, with the body', async () => {
    const { guard } = guardWith({ addresses: ['127.0.0.0/8'], answers: [['127.0.0.3', '127.0.0.1']] })
    expect(await (await pinnedFetch(guard, url('mill.example'), post)).json()).toMatchObject({ body: 'sent' })
  })

  test('with no server at any address fails as the last one does', async () => {
    const { guard } = guardWith({ addresses: ['127.0.0.0/8'], answers: [['127.0.0.3', '127.0.0.4']] })
    const dead = new URL(`http://mill.example:${await freePort()}/`)
    await expect(pinnedFetch(guard, dead, get())).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('without an address, or with nothing that is one, fails', async () => {
    await expect(pinnedFetch(guardWith({ answers: [[]] }).guard, url('mill.example'), get())).rejects.toThrow(
      'has no address',
    )
    const { guard } = guardWith({ answers: [['garbage', '0x7f.1']] })
    await expect(pinnedFetch(guard, url('mill.example'), get())).rejects.toThrow('has no address')
  })

  test('is judged by a bounded number of addresses', async () => {
    const many = Array.from({ length: MAX_ADDRESSES }, () => '10.0.0.1')
    const { guard } = guardWith({ answers: [[...many, '127.0.0.1']] })
    const refusal = await pinnedFetch(guard, url('mill.example'), get()).catch((error) => error)
    expect(refusal).toBeInstanceOf(AddressRefused)
    expect(refusal.addresses).toHaveLength(MAX_ADDRESSES)
  })

  test('whose lookup hangs is left when the signal fires', async () => {
    const never = Promise.withResolvers<never>().promise
    const guard = new AddressGuard({ policy: 'public', flag: 'http-policy', addressesOf: () => never })
    const controller = new AbortController()
    const request = pinnedFetch(guard, url('mill.example'), { ...get(), signal: controller.signal })
    controller.abort()
    await expect(request).rejects.toThrow('the lookup was ended')
  })
})

test('an address is reached without a lookup, also one of IPv6', async () => {
  const { guard, asked } = guardWith({ addresses: ['127.0.0.1', '[::1]'] })
  expect((await pinnedFetch(guard, url('0x7f.1'), get())).status).toBe(200)
  await using six = Bun.serve({
    hostname: '::1',
    port: 0,
    fetch: (request) => new Response(request.headers.get('host')),
  })
  const answer = await pinnedFetch(guard, new URL(`http://[0:0::1]:${six.port}/`), get())
  expect(await answer.text()).toBe(`[::1]:${six.port}`)
  expect(asked).toEqual([])
})

test('a Host header of the caller is sent; the connection still goes to the host of the URL', async () => {
  const { guard } = guardWith({ answers: [['127.0.0.1']] })
  const answer = await (await pinnedFetch(guard, url('mill.example'), get({ host: 'other.example' }))).json()
  expect(answer).toMatchObject({ host: 'other.example' })
})

test('user and password of the URL are sent as usual', async () => {
  const { guard } = guardWith({ answers: [['127.0.0.1']] })
  const answer = await (await pinnedFetch(guard, url('user:pass@mill.example'), get())).json()
  expect(answer).toMatchObject({ authorization: `Basic ${btoa('user:pass')}` })
})

test('redirects are left to the caller', async () => {
  await using redirects = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => Response.redirect(url('127.0.0.2').href),
  })
  const { guard } = guardWith()
  expect((await pinnedFetch(guard, redirects.url, get())).status).toBe(302)
  expect(innerRequests).toBe(0)
})

test('no proxy of the environment is used', async () => {
  const before = process.env.HTTP_PROXY
  process.env.HTTP_PROXY = `http://127.0.0.2:${server.port}`
  try {
    const { guard } = guardWith({ answers: [['127.0.0.1']] })
    expect(await (await pinnedFetch(guard, url('mill.example'), get())).json()).toMatchObject({ body: '' })
    expect(innerRequests).toBe(0)
  } finally {
    if (before === undefined) delete process.env.HTTP_PROXY
    else process.env.HTTP_PROXY = before
  }
})

describe('over TLS', () => {
  test('the certificate must be for the name, whatever the address', async () => {
    using temp = tempDir()
    const { tls, authorityPath } = testCertificate(temp.path, 'DNS:mill.example')
    await using secure = Bun.serve({ hostname: '127.0.0.1', port: 0, tls, fetch: () => new Response('hello') })
    const request = { ...get(), tls: { ca: readFileSync(authorityPath, 'utf8') } }
    const { guard } = guardWith({ answers: [['127.0.0.1']] })
    const at = (host: string) => new URL(`https://${host}:${secure.port}/`)
    expect(await (await pinnedFetch(guard, at('mill.example'), request)).text()).toBe('hello')
    expect(await (await pinnedFetch(guard, at('mill.example.'), request)).text()).toBe('hello')
    for (const host of ['other.example', '127.0.0.1']) {
      await expect(pinnedFetch(guard, at(host), request)).rejects.toMatchObject({
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      })
    }
    const hostHeader = { ...request, headers: new Headers({ host: 'mill.example' }) }
    await expect(pinnedFetch(guard, at('other.example'), hostHeader)).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
  })
})

describe('the check of a URL before it is called', () => {
  const { guard, asked } = guardWith({ addresses: [] })
  test('looks up no name, and does not count', () => {
    for (const text of ['http://mill.example/', 'http://1.1.1.1/', 'http://a..b/']) guard.check(new URL(text))
    expect(asked).toEqual([])
    expect([...guard.refusedByClass.values()].every((count) => count === 0)).toBe(true)
  })
})

test('a host that is none is refused before a lookup', async () => {
  const { guard, asked } = guardWith()
  await expect(pinnedFetch(guard, new URL('http://a..b/'), get())).rejects.toThrow('"a..b" is no host name')
  expect(asked).toEqual([])
})
