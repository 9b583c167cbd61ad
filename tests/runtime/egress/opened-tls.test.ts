/**
 * TLS to a host with a rule about single requests: the proxy ends it, and adds the secret over verified TLS. What an attacker
 * tries at the border between opened and sealed hosts. Source: docs/sandbox.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { MAX_KEPT_CERTIFICATES } from '../../../runtime/egress/authority.ts'
import type { ReadSecret } from '../../../runtime/egress/credentials.ts'
import { SecretFault } from '../../../shared/files/secrets-directory.ts'
import { testCertificate } from '../../support/certificate.ts'
import { SOCKS_CONNECTED, socksRequest, TestClient, TestProxy } from '../../support/egress.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const SECRET = 'tok-4f9a/Zq+c8'
/** More than sockets hold. */
const LARGE = 'x'.repeat(4_000_000)

const HEADERS = { Authorization: { secret: 'token', prefix: 'Bearer ' } }

const readSecret: ReadSecret = (_, to) => {
  if ('host' in to && to.isTls && ('address' in to.host || to.host.name === 'api.example')) return Buffer.from(SECRET)
  throw new SecretFault('the secret token is not for this host')
}

let temp: TempDir
let roots: string
let server: Bun.Server<undefined>
let mismatched: Bun.Server<undefined>
let unknown: Bun.Server<undefined>
const got: string[] = []

function serve(path: string, subject: string) {
  const { tls, authorityPath } = testCertificate(path, subject)
  const own: Bun.Server<undefined> = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0, tls },
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const text = `${request.method} ${pathname}${search} ${JSON.stringify([...request.headers])} ${await request.text()}`
      got.push(text)
      if (pathname === '/moved') return Response.redirect(`https://other.example:${own.port}/`, 302)
      return new Response(pathname === '/large' ? LARGE : text)
    },
  })
  return { own, authorityPath }
}

beforeAll(() => {
  temp = tempDir()
  const trusted = serve(temp.path, 'DNS:api.example,DNS:other.example,IP:127.0.0.1')
  server = trusted.own
  roots = readFileSync(trusted.authorityPath, 'utf8')
  using other = tempDir()
  unknown = serve(other.path, 'DNS:api.example').own
  using third = tempDir()
  const wrong = serve(third.path, 'DNS:elsewhere.example')
  mismatched = wrong.own
  roots += readFileSync(wrong.authorityPath, 'utf8')
})
afterAll(async () => {
  await Promise.all([server, mismatched, unknown].map((one) => one.stop(true)))
  temp[Symbol.dispose]()
})

const newProxy = (rule: object = { headers: HEADERS }, before: readonly string[] = []) =>
  new TestProxy({
    rules: { allow: [...before, '*', { host: 'api.example', ...rule }, { host: '127.0.0.1', ...rule }, '127.0.0.0/8'] },
    names: { 'api.example': ['127.0.0.1'], 'other.example': ['127.0.0.1'] },
    ...{ roots, readSecret },
  })

interface Inside {
  readonly name?: string
  readonly sni?: string
  readonly host?: string
  readonly port?: number
  readonly alpn?: string[]
  readonly ca?: string
  /** The proxy is asked for the connection by SOCKS5. Default: by CONNECT. */
  readonly bySocks?: boolean
  /** The bytes inside go without TLS. */
  readonly isPlain?: boolean
  /** Default: that of the first task. */
  readonly socketPath?: string
}

/** Sends a request through a tunnel and TLS. Resolves with the answer, or what went wrong with TLS. */
async function inside(
  proxy: TestProxy,
  head: string,
  { name = 'api.example', port = server.port!, ...more }: Inside = {},
) {
  const { sni = name, host = `${name}:${port}`, alpn, ca = proxy.authority.bundle().toString() } = more
  got.length = 0
  const client = new TestClient(connect({ path: more.socketPath ?? proxy.socketPath, allowHalfOpen: true }))
  if (more.bySocks === true) {
    client.write(socksRequest(name, port))
    await client.upTo(SOCKS_CONNECTED)
  } else {
    client.write(`CONNECT ${name}:${port} HTTP/1.1\r\nHost: ${name}:${port}\r\n\r\n`)
    const established = await client.upTo('\r\n\r\n')
    if (!established.includes(' 200 ')) return { answer: established, alpn: undefined }
  }
  if (more.isPlain === true) {
    client.write(head.replace('HOST', host))
    return { answer: await client.rest(), alpn: undefined }
  }
  client.socket.removeAllListeners('data')
  const isAddress = /^[\d.]+$/.test(sni)
  const tls = connectTls({
    ...{ socket: client.socket, ca, ...(alpn && { ALPNProtocols: alpn }) },
    ...(isAddress ? { host: sni } : { servername: sni }),
  })
  const secured = new TestClient(tls)
  const fault = await new Promise<Error | undefined>((resolve) => {
    tls.on('secureConnect', () => resolve(undefined))
    tls.on('error', resolve)
    tls.on('close', () => resolve(new Error('closed')))
  })
  if (fault !== undefined) return { answer: `TLS: ${fault.message}`, alpn: undefined }
  secured.write(head.replace('HOST', host))
  return { answer: await secured.rest(), alpn: tls.alpnProtocol }
}

const GET = 'GET /a HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n'

describe('TLS to a host with a rule about requests', () => {
  test('is ended: the secret is added, and masked in the answer', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const { answer, alpn } = await inside(proxy, GET, { alpn: ['h2', 'http/1.1'] })
    expect(alpn).toBe('http/1.1')
    expect(answer).toContain('200 OK')
    expect(got).toEqual([expect.stringContaining(`["authorization","Bearer ${SECRET}"]`)])
    expect(answer).toContain(`["authorization","Bearer ${'*'.repeat(SECRET.length)}"]`)
    expect(proxy.events).toMatchObject([
      { event_type: 'network_allowed', data: { host: 'api.example', protocol: 'connect' } },
    ])
    expect(proxy.faults).toEqual([])
  })

  test('of an address, too, and of a large answer', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, GET, { name: '127.0.0.1' })
    expect(answer).toContain('200 OK')
    expect(got[0]).toContain(SECRET)
    const { answer: large } = await inside(proxy, GET.replace('/a', '/large'))
    expect(large.length).toBeGreaterThan(LARGE.length)
  })

  test('names the rule of a request that does not pass', async () => {
    await using proxy = newProxy({ headers: HEADERS, paths: ['/b'] })
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, GET)
    expect(answer).toStartWith('HTTP/1.1 403 Forbidden')
    expect(answer).toContain('the rule api.example does not let GET /a pass')
    expect(got).toEqual([])
  })

  test('passes sealed to all other hosts, with the certificate of the server', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, GET, { name: 'other.example', ca: roots })
    expect(answer).toContain('200 OK')
    expect(got[0]).not.toContain(SECRET)
    expect((await inside(proxy, GET, { name: 'other.example' })).answer).toContain('TLS: ')
  })
})

describe('no way in gets past the rule', () => {
  test.each<[string, Inside, string[]]>([
    ['by SOCKS5', { bySocks: true }, []],
    ['by another spelling of the name', { name: 'API.Example.', sni: 'api.example' }, []],
    ['by another spelling of the address', { name: '0x7f.1', sni: '127.0.0.1' }, []],
    ['by an opaque rule for the same host', {}, ['api.example opaque']],
    ['by SOCKS5, with an opaque rule', { bySocks: true }, ['api.example opaque']],
  ])('%s', async (_, more, before) => {
    await using proxy = newProxy({ headers: HEADERS, paths: ['/a'] }, before)
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, GET, more)
    expect(got).toEqual([expect.stringContaining(`["authorization","Bearer ${SECRET}"]`)])
    expect(answer).toContain(`["authorization","Bearer ${'*'.repeat(SECRET.length)}"]`)
    const { answer: refused } = await inside(proxy, GET.replace('/a', '/b'), more)
    expect(refused).toContain('does not let GET /b pass')
    expect(got).toEqual([])
  })
})

describe('the socket that ends TLS', () => {
  /** The sockets of a proxy. */
  const endsOf = (proxy: TestProxy) => {
    const directory = dirname(proxy.socketPath)
    return readdirSync(directory).flatMap((name) => (name.startsWith('.') ? [join(directory, name)] : []))
  }

  test('is one for all connections to a host, which do not get each other', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const paths = [proxy.socketPath, proxy.open('task-2', 2)]
    const numbers = Array.from({ length: 40 }, (_, i) => i)
    const ask = (i: number) => inside(proxy, GET.replace('/a', `/${i}`), { socketPath: paths[i % 2]! })
    const answers = await Promise.all(numbers.map(ask))
    for (const i of numbers) expect(answers[i]!.answer).toContain(`GET /${i} `)
    expect(endsOf(proxy)).toHaveLength(1)
    expect(proxy.faults).toEqual([])
  })

  test('stays when strays are removed, is made anew when it is gone, and goes with the service', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    expect((await inside(proxy, GET)).answer).toContain('200 OK')
    proxy.egress.removeStrays()
    expect((await inside(proxy, GET)).answer).toContain('200 OK')
    expect(endsOf(proxy)).toHaveLength(1)
    for (const path of endsOf(proxy)) rmSync(path)
    expect((await inside(proxy, GET)).answer).toContain('TLS: ')
    await until(() => proxy.faults.length === 1)
    expect((await inside(proxy, GET)).answer).toContain('200 OK')
    proxy.egress.stop()
    await until(() => endsOf(proxy).length === 0)
  })

  test(`is one of ${MAX_KEPT_CERTIFICATES}, of the hosts that came last`, async () => {
    await using proxy = new TestProxy({
      rules: { allow: [{ host: '*.example', headers: HEADERS }, '127.0.0.1'] },
      ...{ resolve: async () => ['127.0.0.1'], roots, readSecret },
    })
    await proxy.authority.prepare()
    expect((await inside(proxy, GET)).answer).toContain('200 OK')
    for (let i = 0; i < MAX_KEPT_CERTIFICATES; i++)
      expect((await inside(proxy, GET, { name: `n${i}.example` })).answer).toContain('403 Forbidden')
    expect(endsOf(proxy)).toHaveLength(MAX_KEPT_CERTIFICATES)
    expect((await inside(proxy, GET)).answer).toContain('200 OK')
    expect(endsOf(proxy)).toHaveLength(MAX_KEPT_CERTIFICATES)
    expect(proxy.faults).toEqual([])
  })
})

describe('an attacker gets no secret', () => {
  test.each<[string, string, Inside, string]>([
    ['by another server name in TLS', GET, { sni: 'other.example' }, 'TLS: '],
    ['by another Host inside', GET, { host: 'other.example' }, '400 Bad Request'],
    ['by a URL inside', 'GET https://other.example/ HTTP/1.1\r\nHost: HOST\r\n\r\n', {}, '400 Bad Request'],
    ['by two Hosts', 'GET / HTTP/1.1\r\nHost: HOST\r\nHost: other.example\r\n\r\n', {}, '400 Bad Request'],
    ['by HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', { alpn: ['h2', 'http/1.1'] }, '400 Bad Request'],
    ['by a line that goes on', 'GET / HTTP/1.1\r\nHost: HOST\r\nX: a\r\n b: c\r\n\r\n', {}, '400 Bad Request'],
    ['by CONNECT inside', 'CONNECT other.example:443 HTTP/1.1\r\nHost: HOST\r\n\r\n', {}, '400 Bad Request'],
    ['without TLS', GET, { isPlain: true }, 'the secret token is not for this host'],
    ['by a name for an address', GET, { name: '127.0.0.1', sni: 'api.example' }, 'TLS: '],
  ])('%s', async (_, head, more, expected) => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, head, more)
    expect(answer).toContain(expected)
    expect(answer).not.toContain(SECRET)
    expect(got).toEqual([])
  })

  test('by HTTP/2 without TLS', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', { isPlain: true })
    expect(answer).toBe('')
    expect(proxy.events).toMatchObject([{ event_type: 'network_refused', data: { reason: 'malformed' } }])
  })

  test('from a server without a valid certificate', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const [name, address] = ['api.example', '127.0.0.1']
    for (const [host, port] of [
      [name, unknown.port!],
      [name, mismatched.port!],
      [address, mismatched.port!],
    ] as const) {
      const { answer } = await inside(proxy, GET, { name: host, port })
      expect(answer).toStartWith('HTTP/1.1 502 Bad Gateway')
      expect(answer).toContain('TLS to it failed')
      expect(got).toEqual([])
    }
    const why = expect.stringContaining('TLS to it failed')
    expect(proxy.events.map(({ data }) => data.failure)).toEqual([why, why, why])
  })

  test('through a tunnel to a sealed host, or by a request behind the first', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const behind = await inside(proxy, `${GET}GET /b HTTP/1.1\r\nHost: HOST\r\n\r\n`)
    expect(behind.answer).toContain('/a')
    expect(got).toHaveLength(1)
    const sealed = await inside(proxy, GET, { name: 'other.example', sni: 'api.example', ca: roots })
    expect(sealed.answer).toContain('TLS: ')
    expect(got).toEqual([])
  })

  test('by a redirect, which the task follows without it', async () => {
    await using proxy = newProxy()
    await proxy.authority.prepare()
    const { answer } = await inside(proxy, GET.replace('/a', '/moved'))
    expect(answer).toContain(`ocation: https://other.example:${server.port}/`)
    await inside(proxy, GET, { name: 'other.example', ca: roots })
    expect(got[0]).not.toContain(SECRET)
  })
})

test('a client that does not trust the proxy is told why', async () => {
  await using proxy = newProxy()
  await proxy.authority.prepare()
  const { answer } = await inside(proxy, GET, { ca: roots })
  expect(answer).toContain('TLS: ')
  expect(got).toEqual([])
  const { answer: further } = await inside(proxy, GET)
  expect(further).toContain('200 OK')
  expect(proxy.events[0]).toMatchObject({ event_type: 'network_refused', data: { reason: 'handshake' } })
})
