/**
 * Whatever a client sends, a server gets nothing, or one request that names it: random requests, cut, repeated and with odd
 * bytes in them, through a real proxy.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readRequestHead, tunnelledTarget } from '../../../runtime/egress/wire/http-request.ts'
import { hostOf } from '../../../shared/egress/host.ts'
import { TestProxy, TestServer } from '../../support/egress.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'

/** Pieces of which requests are made, right ones and others. `@` stands for the allowed host with its port. */
const line = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('GET http://@/x HTTP/1.1', 'POST http://@/ HTTP/1.1', 'CONNECT @ HTTP/1.1') },
  fc.constantFrom(
    ...['GET http://@/x HTTP/1.1', 'POST http://@/ HTTP/1.1', 'GET http://b.example/ HTTP/1.1', 'GET /x HTTP/1.1'],
    ...['CONNECT @ HTTP/1.1', 'GET http://@/ HTTP/1.0', 'GET http://b.example@@/ HTTP/1.1', 'PRI * HTTP/2.0'],
  ),
)
const header = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('X: y', 'Content-Length: 5', 'Connection: close', 'Accept: */*') },
  fc.constantFrom(
    ...[
      'Host: @',
      'Host: b.example',
      'host : @',
      'Content-Length: 5',
      'Content-Length: 0',
      'Transfer-Encoding: chunked',
    ],
    ...[
      'Transfer-Encoding: xchunked',
      'Connection: close, Host',
      'Connection: Upgrade',
      'Upgrade: websocket',
      ' folded: x',
    ],
    ...['X: y', 'Expect: 100-continue', 'X:\tGET http://b.example/ HTTP/1.1'],
  ),
)
const end = fc.oneof({ weight: 12, arbitrary: fc.constant('\r\n') }, fc.constantFrom('\n', '\r', '\0\r\n'))
const body = fc.constantFrom(
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '5\r\nhel',
  '0\r\n\r\n',
  '\r\n',
  'GET / HTTP/1.1\r\nHost: b.example\r\n\r\n',
)
const head = fc
  .tuple(line, fc.array(fc.tuple(header, end), { maxLength: 4 }), end, body)
  .map(
    ([first, headers, last, more]) =>
      `${first}\r\nHost: @\r\n${headers.map((parts) => parts.join('')).join('')}${last}${more}`,
  )
const bytes = fc.array(head, { minLength: 1, maxLength: 3 }).map((heads) => heads.join(''))

test('any bytes', async () => {
  let requests: string[] = []
  await using server = await TestServer.start((socket) => {
    let received = ''
    const own = requests // of this run: some may come after its end
    const at = own.push('') - 1
    socket.on('data', (more) => {
      received += more.toString('latin1')
      own[at] = received
      if (received.includes('\r\n\r\n')) socket.end(OK)
    })
  })
  await using proxy = new TestProxy({
    rules: { allow: [`a.example:${server.port}`, '127.0.0.1'] },
    names: { 'a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] },
  })
  const target = { host: hostOf('a.example')!, port: server.port }
  let reached = 0
  await fc.assert(
    fc.asyncProperty(bytes, async (text) => {
      requests = []
      const client = proxy.client()
      client.socket.end(Buffer.from(text.replaceAll('@', `a.example:${server.port}`), 'latin1'))
      await client.rest()
      for (const request of requests) {
        if (request === '') continue // a connection without a request
        reached++
        const [only, ...rest] = request.split('\r\n\r\n')
        const found = readRequestHead(only!)
        tunnelledTarget(found, target)
        expect(found.headers.filter(({ key }) => key === 'host')).toHaveLength(1)
        expect(rest.join('\r\n\r\n')).not.toContain('b.example')
      }
    }),
    { numRuns: 300 },
  )
  expect(reached).toBeGreaterThan(20)
  expect(proxy.faults).toEqual([])
}, 60_000)
