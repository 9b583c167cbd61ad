/** Heads of requests: what is read, and every way in which two programs may read one differently. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { answerHead, forwardedHead } from '../../../../runtime/egress/wire/http-forward.ts'
import {
  bodyLengthOf,
  connectTarget,
  MAX_HEADERS,
  plainTarget,
  readRequestHead,
  tunnelledTarget,
  websocketKey,
} from '../../../../runtime/egress/wire/http-request.ts'
import { Malformed } from '../../../../runtime/egress/wire/malformed.ts'
import { authorityText } from '../../../../runtime/plan/authority.ts'
import { hostOf } from '../../../../shared/egress/host.ts'

/** The example of RFC 6455, 1.3. */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

const head = (...lines: string[]) => readRequestHead(lines.join('\r\n'))
const get = (target: string, ...headers: string[]) => head(`GET ${target} HTTP/1.1`, ...headers)
const TUNNEL = { host: hostOf('a.example')!, port: 8_080 }

describe('a head', () => {
  test.each([
    ['no line', ''],
    ['a space before', ' GET / HTTP/1.1'],
    ['an empty line before', '\r\nGET / HTTP/1.1'],
    ['two spaces', 'GET  / HTTP/1.1'],
    ['a tab', 'GET\t/ HTTP/1.1'],
    ['no version', 'GET /'],
    ['HTTP/0.9', 'GET / HTTP/0.9'],
    ['HTTP/2', 'PRI * HTTP/2.0'],
    ['the preface of HTTP/2 as HTTP/1', 'PRI * HTTP/1.1'],
    ['a method in lower case', 'get / HTTP/1.1'],
    ['a method with a colon', 'G:T / HTTP/1.1'],
    ['a fragment', 'GET /a#b HTTP/1.1'],
    ['a byte above ASCII in the target', 'GET /\xe9 HTTP/1.1'],
    ['a bare LF', 'GET / HTTP/1.1\r\nA: b\nHost: c'],
    ['a bare CR', 'GET / HTTP/1.1\r\nA: b\rHost: c'],
    ['NUL', 'GET / HTTP/1.1\r\nA: b\0c'],
    ['a continued line', 'GET / HTTP/1.1\r\nA: b\r\n c: d'],
    ['a continued first header', 'GET / HTTP/1.1\r\n Host: a'],
    ['a space before the colon', 'GET / HTTP/1.1\r\nHost : a'],
    ['no colon', 'GET / HTTP/1.1\r\nHost'],
    ['no name', 'GET / HTTP/1.1\r\n: a'],
    ['a name in quotes', 'GET / HTTP/1.1\r\n"Host": a'],
    ['too many headers', ['GET / HTTP/1.1', ...Array(MAX_HEADERS + 1).fill('a: b')].join('\r\n')],
  ])('with %s is malformed', (_, text) => {
    expect(() => readRequestHead(text)).toThrow(Malformed)
  })

  test('is read with its headers in order', () => {
    expect(head('M-SEARCH /x HTTP/1.0', 'A:  b \t', 'a: c', 'E:\xe9')).toEqual({
      ...{ method: 'M-SEARCH', target: '/x', minorVersion: 0 },
      headers: [
        { name: 'A', key: 'a', value: 'b' },
        { name: 'a', key: 'a', value: 'c' },
        { name: 'E', key: 'e', value: '\xe9' },
      ],
    })
  })
})

describe('the target', () => {
  const read = (text: string) => {
    const { path, ...authority } = plainTarget(get(text, `Host: ${/\/\/([^/?]*)/.exec(text)?.[1] ?? 'x'}`))
    return [authorityText(authority, 80), path]
  }
  test.each([
    ['http://a.example', 'a.example', '/'],
    ['http://A.Example.:80/x?y', 'a.example', '/x?y'],
    ['HTTP://a.example?x', 'a.example', '/?x'],
    ['http://a.example:81//b', 'a.example:81', '//b'],
    ['http://0x7f.1/', '127.0.0.1', '/'],
    ['http://2130706433/', '127.0.0.1', '/'],
    ['http://0177.0.0.1/', '127.0.0.1', '/'],
    ['http://[::ffff:7f00:1]/', '127.0.0.1', '/'],
    ['http://[::1]:81/', '[::1]:81', '/'],
    ['http://a.example/http://b.example/', 'a.example', '/http://b.example/'],
  ])('of %s is %s %s', (text, authority, path) => {
    expect(read(text)).toEqual([authority, path])
  })

  test.each([
    ...['/', '*', 'a.example', 'a.example:80', '//a.example/', 'http:/a.example', 'http:a.example'],
    ...['https://a.example/', 'ftp://a.example/', 'http://', 'http:///x', 'http://:80/', 'http://a.example:/'],
    ...['http://a.example:0/', 'http://a.example:65536/', 'http://a.example:80:80/', 'http://u@a.example/'],
    ...['http://a.example\\@b.example/', 'http://a%2eexample/', 'http://[::1/', 'http://::1/', 'http://a b/'],
    ...['http://a.example;b/', 'http://a,b/', 'http://a.example%00.b/', "http://a'b/", 'http://a"b/'],
  ])('%j is none', (text) => {
    expect(() => read(text)).toThrow(Malformed)
  })

  test.each([
    ['two', ['Host: a.example', 'Host: a.example']],
    ['two in two cases', ['Host: a.example', 'hOST: b.example']],
    ['none', []],
    ['another', ['Host: b.example']],
    ['another port', ['Host: a.example:81']],
    ['an empty one', ['Host:']],
    ['a list', ['Host: a.example, b.example']],
    ['a user', ['Host: a.example@b.example']],
  ])('with %s in Host is malformed', (_, headers) => {
    expect(() => plainTarget(get('http://a.example/', ...headers))).toThrow(Malformed)
    const connect = head('CONNECT a.example:443 HTTP/1.1', ...headers)
    if (headers.length > 0) expect(() => connectTarget(connect)).toThrow(Malformed)
    expect(() => tunnelledTarget(get('/', ...headers), TUNNEL)).toThrow(Malformed)
  })

  test.each([
    ['a.example:443', 'a.example:443'],
    ['A.EXAMPLE.:22', 'a.example:22'],
    ['[::1]:80', '[::1]:80'],
    ['127.1:80', '127.0.0.1:80'],
  ])('of CONNECT %s is %s', (text, expected) => {
    expect(authorityText(connectTarget(head(`CONNECT ${text} HTTP/1.1`)))).toBe(expected)
    expect(authorityText(connectTarget(head(`CONNECT ${text} HTTP/1.0`, `Host: ${text}`)))).toBe(expected)
  })

  test.each(['a.example', 'a.example:', ':443', 'http://a.example:443', 'a.example:443/', 'u@a.example:443', '*:443'])(
    'of CONNECT cannot be %s',
    (text) => {
      expect(() => connectTarget(head(`CONNECT ${text} HTTP/1.1`))).toThrow(Malformed)
    },
  )

  test.each(['Content-Length: 1', 'Transfer-Encoding: chunked'])('of CONNECT has no body: %s', (header) => {
    expect(() => connectTarget(head('CONNECT a.example:443 HTTP/1.1', header))).toThrow(Malformed)
    expect(connectTarget(head('CONNECT a.example:443 HTTP/1.1', 'Content-Length: 0')).port).toBe(443)
  })

  test('in a tunnel is that of the tunnel', () => {
    expect(tunnelledTarget(get('/x', 'Host: A.example'), TUNNEL)).toEqual({ ...TUNNEL, path: '/x' })
    expect(tunnelledTarget(get('/x', 'Host: a.example:8080'), TUNNEL)).toEqual({ ...TUNNEL, path: '/x' })
    for (const target of ['http://a.example:8080/', '*', 'a.example:8080']) {
      expect(() => tunnelledTarget(get(target, 'Host: a.example:8080'), TUNNEL)).toThrow(Malformed)
    }
    expect(() => tunnelledTarget(head('GET / HTTP/1.0'), TUNNEL)).toThrow('without Host')
  })
})

describe('the length of a body', () => {
  const lengthOf = (...headers: string[]) => bodyLengthOf(get('/', ...headers))
  test.each([
    [[], 0],
    [['Content-Length: 12'], 12],
    [['Content-Length: 00'], 0],
    [['Transfer-Encoding: Chunked'], 'chunked'],
  ] as const)('by %j is %j', (headers, expected) => {
    expect(lengthOf(...headers)).toBe(expected)
  })

  test.each([
    [['Content-Length: 1', 'Content-Length: 1']],
    [['Content-Length: 1, 1']],
    [['Content-Length: +1']],
    [['Content-Length: -1']],
    [['Content-Length: 0x1']],
    [['Content-Length: 1 1']],
    [['Content-Length:']],
    [[`Content-Length: ${'9'.repeat(16)}`]],
    [['Content-Length: 1', 'Transfer-Encoding: chunked']],
    [['Transfer-Encoding: chunked', 'content-length: 0']],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    [['Transfer-Encoding: gzip, chunked']],
    [['Transfer-Encoding: chunked, identity']],
    [['Transfer-Encoding: identity']],
    [['Transfer-Encoding: xchunked']],
    [['Transfer-Encoding: chunked;a=b']],
    [['Transfer-Encoding:']],
  ])('by %j is malformed', (headers) => {
    expect(() => lengthOf(...headers)).toThrow(Malformed)
  })

  test('is never chunked in HTTP/1.0', () => {
    expect(() => bodyLengthOf(head('POST / HTTP/1.0', 'Transfer-Encoding: chunked'))).toThrow(Malformed)
  })
})

describe('what is sent on', () => {
  const target = { host: hostOf('a.example')!, port: 80, path: '/x' }
  const forwarded = (...headers: string[]) => forwardedHead(get('http://a.example/x', ...headers), target).split('\r\n')

  test('has one Host, the other headers as they are, and says that it is the only request', () => {
    expect(forwarded('Host: A.EXAMPLE:80', 'X-a:  1', 'Cookie: b', 'x-A: 2', 'Content-Length: 007')).toEqual([
      ...['GET /x HTTP/1.1', 'Host: a.example', 'X-a: 1', 'Cookie: b', 'x-A: 2', 'Content-Length: 7'],
      ...['Connection: close', '', ''],
    ])
  })

  test('lacks what is for the proxy, or for one connection', () => {
    const headers = [
      ...['Proxy-Connection: keep-alive', 'Proxy-Authorization: Basic x', 'Keep-Alive: 5', 'TE: trailers'],
      ...['Trailer: x', 'Upgrade: h2c', 'HTTP2-Settings: x', 'Connection: Upgrade, HTTP2-Settings, X-Hop', 'X-Hop: 1'],
    ]
    expect(forwarded('Host: a.example', ...headers)).toEqual([
      ...['GET /x HTTP/1.1', 'Host: a.example', 'Connection: close', '', ''],
    ])
  })

  test.each(['Host', 'content-length', 'Transfer-Encoding'])('keeps %s, whatever Connection names', (name) => {
    expect(() => forwarded('Host: a.example', `Connection: close, ${name}`)).toThrow(Malformed)
  })

  test('asks for a WebSocket, and for nothing else', () => {
    const keyed = `Sec-WebSocket-Key: ${KEY}`
    const unkeyed = ['Host: a.example', 'Connection: keep-alive, Upgrade', 'Upgrade: WebSocket']
    expect(websocketKey(get('/', ...unkeyed, keyed))).toBe(KEY)
    expect(forwarded(...unkeyed, keyed).slice(2)).toEqual([
      ...[keyed, 'Connection: Upgrade', 'Upgrade: websocket', '', ''],
    ])
    for (const upgrade of ['h2c', 'websocket, h2c', 'TLS/1.0', '']) {
      expect(websocketKey(get('/', 'Connection: Upgrade', `Upgrade: ${upgrade}`, keyed))).toBeUndefined()
    }
    expect(websocketKey(get('/', ...unkeyed, keyed, 'Content-Length: 1'))).toBeUndefined()
    expect(websocketKey(get('/', 'Upgrade: websocket', keyed))).toBeUndefined()
    for (const keys of [[], ['x'], [''], [KEY, KEY], [KEY.slice(1)], [`${KEY}=`]]) {
      const headers = keys.map((key) => `Sec-WebSocket-Key: ${key}`)
      expect(websocketKey(get('/', ...unkeyed, ...headers))).toBeUndefined()
    }
    expect(forwarded(...unkeyed).slice(2)).toEqual(['Connection: close', '', ''])
  })

  test('reads as it was understood, whatever was sent', () => {
    const token = fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,12}$/)
    const value = fc.stringMatching(/^[\t -~\x80-\xff]{0,20}$/)
    fc.assert(
      fc.property(fc.array(fc.tuple(token, value), { maxLength: 8 }), (headers) => {
        const given = get('http://a.example/x', 'Host: a.example', ...headers.map(([name, text]) => `${name}: ${text}`))
        let text: string
        try {
          text = forwardedHead(given, plainTarget(given))
        } catch (error) {
          expect(error).toBeInstanceOf(Malformed)
          return
        }
        expect(text.endsWith('\r\n\r\n')).toBe(true)
        const again = readRequestHead(text.slice(0, -4))
        expect(bodyLengthOf(again)).toEqual(bodyLengthOf(given))
        expect(tunnelledTarget(again, { host: target.host, port: 80 })).toEqual(target)
        expect(again.headers.filter(({ key }) => key === 'connection')).toHaveLength(1)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('the head of an answer', () => {
  test('is passed on, and says that it is the last', () => {
    expect(answerHead('HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKEEP-ALIVE: x\r\nA: b', undefined)).toEqual({
      ...{ status: 200, text: 'HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n' },
    })
    expect(answerHead('HTTP/1.0 404', undefined).text).toBe('HTTP/1.0 404\r\nConnection: close\r\n\r\n')
    expect(answerHead('HTTP/1.1 100 Continue', undefined)).toEqual({
      status: 100,
      text: 'HTTP/1.1 100 Continue\r\n\r\n',
    })
  })

  test('changes the protocol only to a WebSocket that was asked for', () => {
    const head = (...headers: string[]) => ['HTTP/1.1 101 x', ...headers].join('\r\n')
    const whole = ['Connection: keep-alive, upgrade', 'UPGRADE: WebSocket', `Sec-WebSocket-Accept: ${ACCEPT}`]
    expect(answerHead(head(...whole), KEY)).toEqual({ status: 101, text: `${head(...whole)}\r\n\r\n` })
    expect(() => answerHead(head(...whole), undefined)).toThrow(Malformed)
    expect(() => answerHead(head(...whole), KEY.replace('d', 'e'))).toThrow(Malformed)
    for (let i = 0; i < whole.length; i++)
      expect(() => answerHead(head(...whole.toSpliced(i, 1)), KEY)).toThrow(Malformed)
    for (const more of ['Upgrade: h2c', `Sec-WebSocket-Accept: ${ACCEPT}`]) {
      expect(() => answerHead(head(...whole, more), KEY)).toThrow(Malformed)
    }
  })

  test.each(['', 'hello', 'HTTP/2 200', 'HTTP/1.1 600 x', 'HTTP/1.1 20 x', 'HTTP/1.1 2000 x', 'ICY 200 OK'])(
    'is not %j',
    (text) => {
      expect(() => answerHead(text, KEY)).toThrow(Malformed)
    },
  )
})
