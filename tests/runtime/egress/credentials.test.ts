/**
 * What an attacker in a sandbox tries on rules that add secrets: to get a secret, to have it sent to another host, to get past
 * the rule. Bytes of clients and servers, over plain HTTP. Source: docs/sandbox.md.
 */
import { describe, expect, test } from 'bun:test'
import type { ReadSecret } from '../../../runtime/egress/credentials.ts'
import type { RequestRule } from '../../../shared/contract/runtime-request.ts'
import { SecretFault } from '../../../shared/files/secrets-directory.ts'
import { placeholderText } from '../../../shared/request/placeholder.ts'
import { answering, TestProxy, TestServer } from '../../support/egress.ts'

const SECRET = 'tok-4f9a/Zq+c8'
const NAMES = { 'api.example': ['127.0.0.1'], 'other.example': ['127.0.0.1'] }

const readSecret: ReadSecret = (name, to) => {
  if (name === 'lines') return Buffer.from('one-line\nanother')
  if (name === 'short') return Buffer.from('abc')
  if (name !== 'token' || !('host' in to) || !('name' in to.host) || to.host.name !== 'api.example')
    throw new SecretFault(`the secret ${name} is not for this host`)
  return Buffer.from(`${SECRET}\n`)
}

const BEARER = { headers: { Authorization: { secret: 'token', prefix: 'Bearer ' } } }

/** What the task has in place of secrets. */
const [PLACEHOLDER, DENIED] = ['token', 'other'].map((name) => placeholderText('task-1', name)) as [string, string]

/** A proxy with this rule for `api.example`, while `other.example` and loopback are allowed. */
const proxyWith = (rule: Omit<RequestRule, 'host'> & { host?: string }) =>
  new TestProxy({
    rules: { allow: ['*', { host: 'api.example', ...rule }, '127.0.0.1'] },
    ...{
      names: NAMES,
      readSecret,
      placeholders: new Map([
        [PLACEHOLDER, 'token'],
        [DENIED, 'other'],
      ]),
    },
  })

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'

/** The answer to a request for `path` of `host`, and what the server got. */
async function exchanged(
  rule: Parameters<typeof proxyWith>[0],
  { host = 'api.example', method = 'GET', path = '/', more = '', answer = OK, body = '' } = {},
) {
  await using server = await TestServer.start(answering(answer))
  await using proxy = proxyWith(rule)
  const at = `${host}:${server.port}`
  const got = await proxy.exchange(`${method} http://${at}${path} HTTP/1.1\r\nHost: ${at}\r\n${more}\r\n${body}`)
  return { got, sent: server.received, events: JSON.stringify(proxy.events), faults: proxy.faults }
}

test('a value that was replaced is used, and masked, from the next request on', async () => {
  let value = 'first-value'
  await using proxy = new TestProxy({
    rules: { allow: [{ host: 'api.example', ...BEARER }, '127.0.0.1'] },
    ...{ names: NAMES, readSecret: () => Buffer.from(value) },
  })
  const masked = (text: string) => text.replaceAll(value, '*'.repeat(value.length))
  for (value of ['first-value', 'first-value', 'second-and-longer', 'first-value']) {
    const body = 'first-value second-and-longer'
    const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    await using server = await TestServer.start(answering(answer))
    const at = `api.example:${server.port}`
    const got = await proxy.exchange(`GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`)
    expect(server.received).toContain(`Authorization: Bearer ${value}\r\n`)
    expect(got).toEndWith(`\r\n\r\n${masked(body)}`)
  }
})

describe('a rule adds', () => {
  test('a header, in place of that of the task', async () => {
    const { got, sent, events } = await exchanged(BEARER, {
      more: 'authorization: mine\r\nConnection: Authorization\r\n',
    })
    expect(sent.match(/authorization: .*/gi)).toEqual([`Authorization: Bearer ${SECRET}`])
    expect(got).toEndWith('\r\n\r\nhi')
    expect(events).toContain('"host":"api.example"')
    expect(events).not.toContain(SECRET)
  })

  test('credentials of HTTP Basic', async () => {
    const { sent } = await exchanged({ basic: { user: 'git', secret: 'token' } })
    expect(sent).toContain(`\r\nAuthorization: Basic ${btoa(`git:${SECRET}`)}\r\n`)
  })

  test('parameters of the query, in place of those of the task', async () => {
    const { sent } = await exchanged({ query: { key: { secret: 'token' } } }, { path: '/a?key=mine&b=1&k%65y=x?' })
    expect(sent).toStartWith(`GET /a?b=1&key=${encodeURIComponent(SECRET)} HTTP/1.1\r\n`)
  })

  test('nothing to other hosts, also at the same address', async () => {
    for (const host of ['other.example', '127.0.0.1']) {
      const { got, sent } = await exchanged(BEARER, { host })
      expect(got).toEndWith('hi')
      expect(sent).not.toContain('Authorization')
    }
  })

  test('nothing without a secret: methods and paths alone leave requests as they are', async () => {
    const { sent } = await exchanged({ paths: ['/**'] }, { more: 'Accept-Encoding: gzip\r\n' })
    expect(sent).toContain('Accept-Encoding: gzip')
  })
})

describe('what a rule does not let pass gets 403 with the rule', () => {
  const NARROW = { ...BEARER, methods: ['GET'], paths: ['/v1/*'] }
  test.each([
    [{ method: 'POST', path: '/v1/a' }, 'the rule api.example does not let POST /v1/a pass'],
    [{ path: '/admin?/v1/a' }, 'the rule api.example does not let GET /admin pass'],
    [{ path: '/v1/../admin' }, 'the rule api.example does not let GET /v1/../admin pass'],
  ])('%j', async (request, why) => {
    const { got, sent, events } = await exchanged(NARROW, request)
    expect(got).toStartWith('HTTP/1.1 403 Forbidden\r\n')
    expect(got).toContain(why)
    expect(sent).toBe('')
    expect(events).toContain('"reason":"request"')
  })

  test('a server gets no other method by a header', async () => {
    const more = 'X-HTTP-Method-Override: DELETE\r\nX-Other: 1\r\n'
    const { sent } = await exchanged(NARROW, { path: '/v1/a', more })
    expect(sent).toContain('X-Other: 1')
    expect(sent).not.toContain('DELETE')
  })

  test('the first rule that lets a request pass counts', async () => {
    await using server = await TestServer.start(answering(OK))
    const rules = {
      allow: [{ host: 'api.example', paths: ['/open'] }, { host: 'api.example', ...BEARER }, '127.0.0.1'],
    }
    await using proxy = new TestProxy({ rules, names: NAMES, readSecret })
    const at = `api.example:${server.port}`
    await proxy.exchange(`GET http://${at}/open HTTP/1.1\r\nHost: ${at}\r\n\r\n`)
    expect(server.received).not.toContain(SECRET)
    server.received = ''
    await proxy.exchange(`GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`)
    expect(server.received).toContain(SECRET)
  })
})

describe('a secret is not sent', () => {
  test.each([
    ['that the operator gives to another host', { headers: { X: { secret: 'other' } } }, {}, 'is not for this host'],
    ['with a line break', { headers: { X: { secret: 'lines' } } }, {}, 'has a line break'],
    ['that is too short to be masked', { headers: { X: { secret: 'short' } } }, {}, 'cannot be masked'],
    [
      'to a WebSocket',
      BEARER,
      { more: 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' },
      'no WebSocket gets one',
    ],
  ])('%s', async (_, rule, request, why) => {
    const { got, sent } = await exchanged(rule, request)
    expect(got).toStartWith('HTTP/1.1 403 Forbidden\r\n')
    expect(got).toContain(why)
    expect(sent).toBe('')
  })

  test('to what becomes HTTP/2: no Upgrade reaches the server, and its answer becomes nothing else', async () => {
    const more = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
    const answer = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n${SECRET}`
    const { got, sent } = await exchanged(BEARER, { more, answer, body: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' })
    expect(sent.replace(/\r\nHost: .*/, '')).toBe(
      `GET / HTTP/1.1\r\nAuthorization: Bearer ${SECRET}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n`,
    )
    expect(got).not.toContain(SECRET)
    expect(got).not.toContain('h2c')
  })

  test('to a second request behind the first', async () => {
    const second = 'GET http://api.example/admin HTTP/1.1\r\nHost: api.example\r\n\r\n'
    const { sent } = await exchanged({ ...BEARER, paths: ['/'] }, { body: second })
    expect(sent).not.toContain('/admin')
  })

  test.each([
    ['Host', 'Host: other.example\r\n', 'two Host headers'],
    ['two lengths', 'Content-Length: 0\r\nContent-Length: 5\r\n', 'two Content-Length headers'],
    [
      'a length and chunks',
      'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
      'Content-Length with Transfer-Encoding',
    ],
    ['a line that goes on', 'X-A: b\r\n Authorization: c\r\n', 'a header with a character that is not allowed'],
    ['a line end without CR', 'X-A: b\nX-B: c\r\n', 'a header with a character that is not allowed'],
    ['a line end without LF', 'X-A: b\rX-B: c\r\n', 'a header with a character that is not allowed'],
    ['a name with a space', 'Transfer-Encoding : chunked\r\n', 'a header'],
    ['a NUL', 'X-A: b\0X-B: c\r\n', 'a header with a character that is not allowed'],
  ])('with a head that two programs read differently: %s', async (_, more, why) => {
    const { got, sent } = await exchanged(BEARER, { more })
    expect(got).toContain(why)
    expect(sent).toBe('')
  })

  test('inside a tunnel to another name, and to its own name it is', async () => {
    await using server = await TestServer.start(answering(OK))
    await using proxy = proxyWith(BEARER)
    const through = async (name: string, host: string) => {
      const client = proxy.client()
      client.write(`CONNECT ${name}:${server.port} HTTP/1.1\r\nHost: ${name}:${server.port}\r\n\r\n`)
      await client.upTo('\r\n\r\n')
      client.write(`GET / HTTP/1.1\r\nHost: ${host}:${server.port}\r\n\r\n`)
      return await client.rest()
    }
    expect(await through('other.example', 'api.example')).toContain('400 Bad Request')
    expect(server.received).toBe('')
    expect(await through('api.example', 'api.example')).toEndWith('hi')
    expect(server.received).toContain(`Authorization: Bearer ${SECRET}`)
  })
})

describe('a placeholder', () => {
  const BASIC = btoa(`me:${PLACEHOLDER}`)
  const more = `X-Key: a ${PLACEHOLDER}, ${PLACEHOLDER}\r\nAuthorization: basic ${BASIC}\r\n`

  test('is replaced in headers, also in credentials of HTTP Basic, and masked in the answer', async () => {
    const answer = `HTTP/1.1 200 OK\r\n\r\n${SECRET} ${btoa(`me:${SECRET}`)}`
    const { got, sent } = await exchanged({ paths: ['/a'] }, { path: '/a', more, answer })
    expect(sent).toContain(`\r\nX-Key: a ${SECRET}, ${SECRET}\r\n`)
    expect(sent).toContain(`\r\nAuthorization: Basic ${btoa(`me:${SECRET}`)}\r\n`)
    expect(sent).not.toContain(PLACEHOLDER)
    expect(got).toMatch(/\r\n\r\n\*+ \*+$/)
  })

  test('stays as it is in the address and the body, and at other hosts', async () => {
    const body = PLACEHOLDER
    const length = `Content-Length: ${body.length}\r\n`
    const { sent } = await exchanged({}, { method: 'POST', path: `/${PLACEHOLDER}`, more: length, body })
    expect(sent).toStartWith(`POST /${PLACEHOLDER} `)
    expect(sent).toEndWith(PLACEHOLDER)
    for (const host of ['other.example', '127.0.0.1']) {
      expect((await exchanged({}, { host, more })).sent).toContain(`X-Key: a ${PLACEHOLDER}`)
    }
  })

  test.each([
    [{ more: `X: ${DENIED}\r\n` }, 'is not for this host'],
    [{ more, path: '/b' }, 'does not let GET /b pass'],
  ])('does not get past the rules: %j', async (request, why) => {
    const { got, sent } = await exchanged({ paths: ['/'] }, request)
    expect(got).toContain(why)
    expect(sent).toBe('')
  })

  test('of another task, or made up, is a text like any other', async () => {
    const other = placeholderText('task-2', 'token')
    const { sent } = await exchanged({}, { more: `X: ${other}\r\nY: ${placeholderText('task-1', 'third')}\r\n` })
    expect(sent).toContain(`X: ${other}\r\n`)
    expect(sent).not.toContain(SECRET)
  })
})

describe('an answer that echoes the secret is masked', () => {
  const STARS = '*'.repeat(SECRET.length)
  const get = async (answer: string, request = {}) => (await exchanged(BEARER, { answer, ...request })).got

  test('in its head and its body, whose lengths stay', async () => {
    const body = `{"Authorization": "Bearer ${SECRET}"}`
    const got = await get(`HTTP/1.1 200 OK\r\nX-Echo: ${SECRET}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    const masked = `{"Authorization": "Bearer ${STARS}"}`
    expect(got).toBe(
      `HTTP/1.1 200 OK\r\nX-Echo: ${STARS}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${masked}`,
    )
  })

  test('in chunks that cut it in two, and up to the end of the connection', async () => {
    const [a, b] = [`x${SECRET.slice(0, 5)}`, `${SECRET.slice(5)}y`]
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    const chunks = [a, b, ''].map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join('')
    const got = await get(head + chunks)
    expect(got).not.toContain(SECRET.slice(5))
    expect(got.replace(/\r\n[0-9a-f]+\r\n/g, '')).toContain(`x${STARS}y`)
    expect(got).toEndWith('0\r\n\r\n')
    expect(await get(`HTTP/1.0 200 OK\r\n\r\nx${SECRET}`)).toEndWith(`\r\n\r\nx${STARS}`)
  })

  test('in its first line, a name of a header, extensions of chunks and trailers', async () => {
    const chunks = `2;x=${SECRET}\r\nhi\r\n0;y=${SECRET}\r\nX-Trailer: ${SECRET}\r\n\r\n`
    const got = await get(
      `HTTP/1.1 200 ${SECRET}\r\nX-${SECRET.replace('/', '%2F')}: 1\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    )
    expect(got).toStartWith('HTTP/1.1 200 ***')
    expect(got).toEndWith('\r\n\r\n2\r\nhi\r\n0\r\n\r\n')
    expect(got).not.toContain(SECRET.slice(4))
  })

  test.each([
    ['GET', '304 Not Modified'],
    ['HEAD', '200 OK'],
  ])('in headers that would tell where a body ends, if there is none: %s, %s', async (method, status) => {
    const got = await get(`HTTP/1.1 ${status}\r\nContent-Length: ${SECRET}\r\nTransfer-Encoding: ${SECRET}\r\n\r\n`, {
      method,
    })
    expect(got).toContain(`Content-Length: ${STARS}`)
    expect(got).not.toContain(SECRET)
  })

  test('in other spellings, in a redirect and before the last answer', async () => {
    const encoded = encodeURIComponent(SECRET)
    const got = await get(
      `HTTP/1.1 103 Early Hints\r\nLink: <${SECRET}>\r\n\r\nHTTP/1.1 302 Found\r\nLocation: http://other.example/?k=${encoded}\r\nContent-Length: 0\r\n\r\n`,
    )
    expect(got).toContain('Location: http://other.example/?k=***')
    expect(got).not.toContain(SECRET)
    expect(got).not.toContain(encoded)
    const basic = await exchanged(
      { basic: { user: 'git', secret: 'token' } },
      { answer: `HTTP/1.1 200 OK\r\n\r\n${btoa(`git:${SECRET}`)}` },
    )
    expect(basic.got).toMatch(/\r\n\r\n\*+$/)
  })

  test.each([
    [
      'compressed',
      'Content-Encoding: gzip\r\nContent-Length: 1\r\n',
      'in an encoding in which secrets cannot be masked',
    ],
    ['in two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n', 'with a wrong Content-Length'],
    ['in another coding', 'Transfer-Encoding: gzip, chunked\r\n', 'with a Transfer-Encoding other than chunked'],
    ['with a line that goes on', 'X-A: b\r\n c\r\n', 'with a header on two lines'],
  ])('or, if it cannot be, gets 502: %s', async (_, more, why) => {
    const got = await get(`HTTP/1.1 200 OK\r\n${more}\r\nx`)
    expect(got).toStartWith('HTTP/1.1 502 Bad Gateway\r\n')
    expect(got).toContain(why)
  })

  test('a server is asked for no encoding, and an answer without a body has none', async () => {
    const { sent } = await exchanged(BEARER, { more: 'Accept-Encoding: gzip, br\r\n' })
    expect(sent.match(/accept-encoding: .*/gi)).toEqual(['Accept-Encoding: identity'])
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\n'
    expect(await get(head, { method: 'HEAD' })).toEndWith('Connection: close\r\n\r\n')
  })

  test('of an answer that is cut short, the beginning of a secret does not get through', async () => {
    const got = await get(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx${SECRET.slice(0, -1)}`)
    expect(got).toEndWith('\r\n\r\nx')
  })
})
