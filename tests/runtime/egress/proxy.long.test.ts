/**
 * The proxy of a task: what it connects, and what it refuses. Real sockets, names of the test's own, and every way that we
 * know to mean one host and reach another.
 */
import { describe, expect, test } from 'bun:test'
import { ECH, extension, hello, inRecords, message, serverName } from '../../support/client-hello.ts'
import {
  answering,
  type ProxyOptions,
  SOCKS_CONNECTED,
  socksRequest,
  TestProxy,
  TestServer,
} from '../../support/egress.ts'
import { until } from '../../support/until.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
/** A request for a WebSocket, and an answer that agrees to it: the example of RFC 6455, 1.3. */
const ASKING = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
const AGREED =
  'HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'
const CONNECTED = 'HTTP/1.1 200 Connection established\r\n\r\n'

const echo = (socket: import('node:net').Socket) => void socket.pipe(socket)

/** A proxy for a server of this machine that has the names `a.example` and `b.example`, of which only the first is allowed. */
async function proxied(onConnection: Parameters<typeof TestServer.start>[0], more: Partial<ProxyOptions> = {}) {
  const server = await TestServer.start(onConnection)
  const proxy = new TestProxy({
    rules: { allow: [`a.example:${server.port}`, `127.0.0.1:${server.port}`] },
    names: { 'a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] },
    ...more,
  })
  const at = (host: string) => `${host}:${server.port}`
  return {
    ...{ server, proxy, at },
    connect: (host: string) => `CONNECT ${at(host)} HTTP/1.1\r\nHost: ${at(host)}\r\n\r\n`,
    get: (host: string, ...headers: string[]) =>
      `${[`GET http://${at(host)}/x HTTP/1.1`, `Host: ${at(host)}`, ...headers].join('\r\n')}\r\n\r\n`,
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      expect(proxy.faults).toEqual([])
    },
  }
}

describe('an allowed connection', () => {
  test('by HTTP: the request is written anew, the answer says that it is the last', async () => {
    await using at = await proxied(answering(OK))
    expect(await at.proxy.exchange(at.get('A.Example.', 'Proxy-Connection: keep-alive', 'X: y'))).toBe(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
    )
    expect(at.server.received).toBe(
      `GET /x HTTP/1.1\r\nHost: ${at.at('a.example')}\r\nX: y\r\nConnection: close\r\n\r\n`,
    )
    const sent = at.server.received.length
    expect(at.proxy.events).toEqual([
      {
        event_type: 'network_allowed',
        message: `the connection to ${at.at('a.example')} is allowed: ${sent} bytes sent, ${OK.length - 4} received`,
        data: {
          ...{ host: 'a.example', port: at.server.port, protocol: 'http', address: '127.0.0.1' },
          ...{ rule: `127.0.0.1:${at.server.port}`, bytes_sent: sent, bytes_received: OK.length - 4 },
          duration_ms: expect.any(Number),
        },
      },
    ])
  })

  test('by CONNECT: TLS for the name of the connection', async () => {
    await using at = await proxied(echo)
    const client = at.proxy.client()
    client.write(at.connect('a.example'))
    expect(await client.upTo('\r\n\r\n')).toBe(CONNECTED)
    const first = hello('A.example')
    for (const byte of first) client.write(Uint8Array.of(byte))
    expect(await client.upTo('A.example')).toContain('\x16\x03\x01')
    client.write('and more')
    await client.upTo('and more')
    client.socket.end()
    await client.rest()
    await until(
      () => at.proxy.usage,
      ({ connections_allowed }) => connections_allowed === 1,
    )
    const bytes = first.length + 'and more'.length
    expect(at.proxy.usage).toEqual({
      ...{ connections_allowed: 1, connections_refused: 0, bytes_sent: bytes, bytes_received: bytes },
    })
  })

  test('by CONNECT: HTTP for the name of the connection', async () => {
    await using at = await proxied(answering(OK))
    const text = `${at.connect('a.example')}GET /y HTTP/1.1\r\nHost: a.example\r\n\r\n`
    expect(await at.proxy.exchange(text)).toEndWith('\r\n\r\nhi')
    expect(at.server.received).toStartWith('GET /y HTTP/1.1\r\nHost: a.example')
  })

  test('by CONNECT to an address: anything', async () => {
    await using at = await proxied((socket) => socket.end('220 welcome\r\n'))
    const client = at.proxy.client()
    client.write(at.connect('127.0.0.1'))
    expect(await client.upTo('welcome')).toBe(`${CONNECTED}220 welcome`)
    client.socket.end()
    await client.rest()
  })

  test('by SOCKS5, with a name and an address of each version', async () => {
    await using at = await proxied(echo)
    for (const [asking, first] of [
      [socksRequest('a.example', at.server.port), hello('a.example')],
      [socksRequest('::ffff:127.0.0.1', at.server.port), Buffer.from('anything')],
    ] as const) {
      const client = at.proxy.client()
      client.write(asking)
      expect(await client.upTo(SOCKS_CONNECTED)).toHaveLength(12)
      client.write(first)
      await client.upTo(first.subarray(-5).toString())
      client.socket.end()
      await client.rest()
    }
    expect(at.proxy.usage.connections_allowed).toBe(2)
  })

  test('that is opaque: anything, also where the server speaks first', async () => {
    const server = await TestServer.start((socket) => socket.end('220 welcome\r\n'))
    await using _ = server
    await using proxy = new TestProxy({
      rules: { allow: [`a.example:${server.port} opaque`, '127.0.0.1'] },
      names: { 'a.example': ['127.0.0.1'] },
    })
    const client = proxy.client()
    client.write(`CONNECT a.example:${server.port} HTTP/1.1\r\n\r\n`)
    expect(await client.upTo('welcome')).toEndWith('220 welcome')
    client.socket.end('SSH-2.0-x\r\n')
    await client.rest()
  })

  test('carries a body of each kind, and nothing behind it', async () => {
    for (const [headers, body, received] of [
      ['Content-Length: 5', 'helloGET /evil HTTP/1.1\r\n\r\n', 'hello'],
      [
        'Transfer-Encoding: chunked',
        '5;x=y\r\nhello\r\n0\r\nT: u\r\n\r\nGET /evil HTTP/1.1\r\n\r\n',
        '5\r\nhello\r\n0\r\n\r\n',
      ],
    ] as const) {
      await using at = await proxied((socket, server) => {
        socket.on('data', () => server.received.endsWith(received) && socket.end(OK))
      })
      const head = `POST http://${at.at('a.example')}/ HTTP/1.1\r\nHost: ${at.at('a.example')}\r\n${headers}\r\n\r\n`
      expect(await at.proxy.exchange(head + body)).toEndWith('hi')
      expect(at.server.received.split('\r\n\r\n').slice(1).join('\r\n\r\n')).toBe(received)
    }
  })

  test('waits for "100 Continue", and passes an early answer back', async () => {
    await using at = await proxied((socket, server) => {
      socket.once('data', () => socket.write('HTTP/1.1 100 Continue\r\n\r\n'))
      socket.on('data', () => server.received.endsWith('hello') && socket.end(OK))
    })
    const client = at.proxy.client()
    client.write(at.get('a.example', 'Content-Length: 5', 'Expect: 100-continue'))
    expect(await client.upTo('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    client.write('hello')
    expect(await client.rest()).toEndWith('hi')
    await using early = await proxied((socket) => void socket.once('data', () => socket.end('HTTP/1.1 413 x\r\n\r\n')))
    expect(await early.proxy.exchange(early.get('a.example', 'Content-Length: 5'))).toStartWith('HTTP/1.1 413 x\r\n')
  })

  test('becomes a WebSocket once the server agrees', async () => {
    await using at = await proxied((socket, server) => {
      socket.once('data', () => socket.write(AGREED))
      socket.on(
        'data',
        (bytes) => server.received.endsWith('ping') && bytes.toString().endsWith('ping') && socket.end('pong'),
      )
    })
    const client = at.proxy.client()
    client.write(at.get('a.example', ...ASKING))
    expect(await client.upTo('\r\n\r\n')).toBe(AGREED)
    client.write('ping')
    client.socket.end()
    expect(await client.rest()).toBe('pong')
  })

  test('becomes nothing else, and carries no other request, whatever the server agrees to', async () => {
    const without = (name: string) => AGREED.replace(new RegExp(`${name}: .*\\r\\n`), '')
    for (const answer of ['Connection', 'Upgrade', 'Sec-WebSocket-Accept'].map(without)) {
      await using at = await proxied((socket) => void socket.once('data', () => socket.write(answer)))
      const client = at.proxy.client()
      client.write(at.get('a.example', ...ASKING) + at.get('b.example'))
      expect(await client.rest()).toContain('sent an answer to a request for a WebSocket that is none')
      expect(at.server.received).not.toContain('b.example')
    }
  })

  test('is passed on as slowly as it is read', async () => {
    const block = Buffer.alloc(1 << 20)
    let written = 0
    await using at = await proxied((socket) => {
      const more = () => {
        while (written < 64 << 20) {
          written += block.length
          if (!socket.write(block)) return void socket.once('drain', more)
        }
      }
      more()
    })
    const client = at.proxy.client()
    client.socket.pause()
    client.write(at.connect('127.0.0.1'))
    const steady = { bytes: -1, times: 0 }
    await until(
      async () => {
        steady.times = written > 0 && written === steady.bytes ? steady.times + 1 : 0
        steady.bytes = written
        return steady.times
      },
      (times) => times >= 10,
    )
    expect(written).toBeLessThan(32 << 20)
    client.socket.destroy()
  })
})

describe('a refused connection', () => {
  test('is answered in the protocol of the client, and told', async () => {
    await using at = await proxied(answering(OK))
    const why = 'is refused: no rule of sandbox.network.allow, or of --egress-allow, covers it'
    for (const text of [at.get('b.example'), at.connect('b.example')]) {
      expect(await at.proxy.exchange(text)).toMatch(
        /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*no rule of sandbox\.network\.allow/,
      )
    }
    expect(await at.proxy.exchange(socksRequest('b.example', at.server.port))).toBe(
      '\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00',
    )
    const told = (protocol: string) => ({
      event_type: 'network_refused',
      message: `the connection to ${at.at('b.example')} ${why}`,
      data: { host: 'b.example', port: at.server.port, protocol, reason: 'unlisted' },
    })
    expect(at.proxy.events).toEqual(['http', 'connect', 'socks5'].map(told))
    expect(at.proxy.usage).toMatchObject({ connections_refused: 3, connections_allowed: 0 })
    expect(at.proxy.egress.totals).toMatchObject({ refused: 3, allowed: 0, open: 0 })
    expect(at.server.received).toBe('')
  })

  test.each([
    ...[
      '127.0.0.1',
      '0177.0.0.1',
      '2130706433',
      '[::1]',
      '[::ffff:7f00:1]',
      '１２７.0.0.1',
      '127。0。0。1',
      'LOCALHOST.',
    ],
    ...['169.254.169.254', '0xa9fea9fe', '[fd00:ec2::254]', '10.0.0.1', '[fe80::1%25eth0]', '224.0.0.1'],
  ])('is every one to %s under the rule *', async (host) => {
    const resolve = async (name: string) => [name.includes('localhost') ? '127.0.0.1' : '93.184.216.34']
    await using at = await proxied(answering(OK), { rules: { allow: ['*'] }, resolve })
    const name = Buffer.from(host, 'utf8').toString('latin1')
    const answers = [
      await at.proxy.exchange(
        `GET http://${name}:${at.server.port}/ HTTP/1.1\r\nHost: ${name}:${at.server.port}\r\n\r\n`,
      ),
      await at.proxy.exchange(`CONNECT ${name}:${at.server.port} HTTP/1.1\r\n\r\n`),
      await at.proxy.exchange(socksRequest(name, at.server.port)),
    ]
    expect(answers[0]).toMatch(/^HTTP\/1\.1 40[03] /)
    expect(answers[1]).toMatch(/^HTTP\/1\.1 40[03] /)
    expect(['\x05\x00\x05\x01', '\x05\x00\x05\x02', '\x05\x00']).toContain(answers[2]!.slice(0, 4))
    expect(at.server.received).toBe('')
    expect(at.proxy.usage).toMatchObject({ connections_allowed: 0, connections_refused: 3 })
  })

  test('is one to a name with an address that is not public: each answer counts by itself', async () => {
    const names = { 'a.example': ['10.0.0.1', '::1', '169.254.169.254'], 'c.example': ['nonsense'] }
    await using proxy = new TestProxy({ rules: { allow: ['*.example'] }, names })
    expect(await proxy.exchange('CONNECT a.example:80 HTTP/1.1\r\n\r\n')).toContain('its address is private')
    expect(proxy.events[0]?.data).toMatchObject({ reason: 'class', address_class: 'private' })
    expect(await proxy.exchange('CONNECT c.example:80 HTTP/1.1\r\n\r\n')).toContain('the name has no address')
    expect(proxy.events[1]).toMatchObject({
      event_type: 'network_allowed',
      data: { failure: 'the name has no address' },
    })
  })

  test('is one to a name whose next address is another: each connection checks the address that it uses', async () => {
    const answers = [['127.0.0.1'], ['169.254.169.254'], ['10.0.0.1']]
    let lookups = 0
    const resolve = async () => answers[lookups++]!
    await using at = await proxied(answering(OK), { resolve })
    expect(await at.proxy.exchange(at.get('a.example'))).toEndWith('hi')
    expect(lookups).toBe(1) // the checked address was used: no second lookup
    expect(await at.proxy.exchange(at.get('a.example'))).toContain('403 Forbidden')
    expect(await at.proxy.exchange(at.get('a.example'))).toContain('403 Forbidden')
    expect(lookups).toBe(3)
  })

  test('never asks a name server for a name that no rule covers', async () => {
    const asked: string[] = []
    const resolve = async (name: string) => {
      asked.push(name)
      return []
    }
    await using proxy = new TestProxy({ rules: { allow: ['a.example:443'], deny: ['x.a.example'] }, resolve })
    for (const target of ['secret.b.example:443', 'a.example:80', 'x.a.example:443', 'a.example:443']) {
      await proxy.exchange(`CONNECT ${target} HTTP/1.1\r\n\r\n`)
    }
    expect(asked).toEqual(['a.example.'])
  })

  test('is one that the operator does not allow', async () => {
    const bounds = { allow: ['a.example', '127.0.0.0/8'], deny: ['*.a.example'] }
    const names = { 'a.example': ['127.0.0.1'], 'x.a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] }
    await using at = await proxied(answering(OK), { bounds, names, rules: { allow: ['*', '127.0.0.1'] } })
    expect(await at.proxy.exchange(at.get('a.example'))).toEndWith('hi')
    expect(await at.proxy.exchange(at.get('b.example'))).toContain('--egress-allow')
    expect(await at.proxy.exchange(at.get('x.a.example'))).toContain('the rule *.a.example denies it')
    await using strict = await proxied(answering(OK), {
      bounds: { allow: ['a.example', '127.0.0.1'] },
      rules: { allow: [] },
    })
    expect(await strict.proxy.exchange(strict.get('a.example'))).toContain('403 Forbidden')
  })
})

describe('a tunnel to a name', () => {
  test.each<[string, Uint8Array | string, object]>([
    ['TLS to another name', hello('b.example'), { reason: 'server_name', found: 'b.example' }],
    ['TLS to a name below', hello('x.a.example'), { reason: 'server_name', found: 'x.a.example' }],
    ['TLS to an address', hello('127.0.0.1'), { reason: 'server_name', found: '127.0.0.1' }],
    ['TLS to a name that IDNA would map', hello('\xaa.example'), { reason: 'server_name' }],
    ['TLS to a name with NUL', hello('a.example\0.b.example'), { reason: 'server_name' }],
    ['TLS without a name', inRecords(message([extension(23, [])])), { reason: 'hidden_name' }],
    ['TLS with an encrypted name', inRecords(message([serverName('a.example'), ECH])), { reason: 'hidden_name' }],
    [
      'TLS with two names',
      inRecords(message([serverName('a.example'), serverName('b.example')])),
      { reason: 'malformed' },
    ],
    ['HTTP to another name', 'GET / HTTP/1.1\r\nHost: b.example\r\n\r\n', { reason: 'malformed' }],
    [
      'HTTP with two Host headers',
      'GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n',
      { reason: 'malformed' },
    ],
    ['HTTP to a URL', 'GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n', { reason: 'malformed' }],
    ['HTTP without a host', 'GET / HTTP/1.0\r\n\r\n', { reason: 'malformed' }],
    ['another CONNECT', 'CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n', { reason: 'malformed' }],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', { reason: 'malformed' }],
    ['SSH', 'SSH-2.0-OpenSSH_9\r\n', { reason: 'malformed' }],
    ['another protocol', '\x00\x01\x02', { reason: 'protocol' }],
  ])('does not carry %s', async (_, first, data) => {
    await using at = await proxied((socket) => socket.write('secret'))
    for (const asking of [at.connect('a.example'), socksRequest('a.example', at.server.port)]) {
      at.proxy.events.length = 0
      const client = at.proxy.client()
      client.write(Buffer.concat([Buffer.from(asking, 'latin1'), Buffer.from(first as string, 'latin1')]))
      const answer = await client.rest()
      expect(answer).not.toContain('secret')
      expect(at.proxy.events.map((event) => event.data)).toMatchObject([{ host: 'a.example', ...data }])
    }
    expect(at.server.received).toBe('')
  })
})

test('a server that does not answer in TLS gets a ClientHello, and nothing that follows it', async () => {
  const first = Buffer.concat([hello('a.example'), Buffer.from('GET / HTTP/1.1\r\nHost: b.example\r\n\r\n')])
  await using at = await proxied(
    (socket) => void socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')),
  )
  for (const asking of [at.connect('a.example'), socksRequest('a.example', at.server.port)]) {
    expect(await at.proxy.exchange(Buffer.concat([Buffer.from(asking, 'latin1'), first]))).not.toContain('400')
  }
  expect(at.proxy.events.map(({ data }) => data.reason)).toEqual(['protocol', 'protocol'])
  expect(at.server.received).not.toContain('GET')
})

describe('a request that others may read differently is refused, and nothing of it is sent', () => {
  test.each<[string, (host: string) => string]>([
    ['another Host', (host) => `GET http://${host}/ HTTP/1.1\r\nHost: b.example\r\n\r\n`],
    [
      'two lengths',
      (host) => `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    ],
    ['h2c', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a head that never ends', (host) => `GET http://${host}/ HTTP/1.1\r\nA: ${'b'.repeat(40_000)}`],
    ['SOCKS4', () => '\x04\x01\x00\x50\x7f\x00\x00\x01\x00'],
    ['TLS to the proxy', () => Buffer.from(hello('a.example')).toString('latin1')],
  ])('%s', async (_, text) => {
    await using at = await proxied(answering(OK))
    const answer = await at.proxy.exchange(text(at.at('a.example')))
    expect(answer).toStartWith('HTTP/1.1 400 Bad Request\r\n')
    expect(at.proxy.events).toMatchObject([{ event_type: 'network_refused', data: { reason: 'malformed' } }])
    expect(at.server.received).toBe('')
  })

  test('a second request on a connection goes nowhere, also after one that asks for a WebSocket in vain', async () => {
    await using at = await proxied(answering(OK))
    const second = at.get('b.example')
    expect(await at.proxy.exchange(at.get('a.example') + second)).toEndWith('\r\n\r\nhi')
    const upgrade = at.get('a.example', ...ASKING)
    expect(await at.proxy.exchange(upgrade + second)).toEndWith('\r\n\r\nhi')
    expect(at.server.received.match(/GET/g)).toHaveLength(2)
    expect(at.server.received).not.toContain('b.example')
  })

  test.each([
    ['nothing', '', 'sent no answer'],
    ['another protocol', 'SSH-2.0-x\r\n\r\n', 'sent an answer that is none of HTTP/1'],
    [
      'a change of the protocol',
      'HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n',
      'sent another protocol, which was not asked for',
    ],
    [
      'a head that never ends',
      `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(40_000)}`,
      'sent more than 32768 bytes before its end',
    ],
  ])('an answer that is %s is a failure of the server', async (_, sent, message) => {
    await using at = await proxied((socket) => void socket.once('data', () => socket.end(sent)))
    const answer = await at.proxy.exchange(at.get('a.example'))
    expect(answer).toStartWith('HTTP/1.1 502 Bad Gateway\r\n')
    expect(answer).toContain(message)
    expect(at.proxy.events).toMatchObject([{ event_type: 'network_allowed' }])
  })

  test('a body that breaks its own form is cut', async () => {
    await using at = await proxied(() => {})
    const head = `POST http://${at.at('a.example')}/ HTTP/1.1\r\nHost: ${at.at('a.example')}\r\nTransfer-Encoding: chunked\r\n\r\n`
    await at.proxy.exchange(`${head}5\r\nhelloX\r\n`)
    expect(at.proxy.events).toMatchObject([{ event_type: 'network_allowed', data: { cut: 'malformed' } }])
    await until(() => at.server.sockets.size, 0)
  })
})

test('a server that cannot be reached is told as allowed, with the reason', async () => {
  const server = await TestServer.start(echo)
  const { port } = server
  await server[Symbol.asyncDispose]()
  await using proxy = new TestProxy({ rules: { allow: ['127.0.0.1'] } })
  const answer = await proxy.exchange(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)
  expect(answer).toStartWith('HTTP/1.1 502 Bad Gateway\r\n')
  expect(answer).toContain('127.0.0.1 cannot be connected to (ECONNREFUSED)')
  expect(proxy.events).toMatchObject([
    { event_type: 'network_allowed', data: { failure: expect.stringContaining('ECONNREFUSED') } },
  ])
  expect(proxy.egress.totals).toMatchObject({ failed: 1, allowed: 0, open: 0 })
})
