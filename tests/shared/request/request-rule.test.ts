/** Rules about single requests: what they accept, and which requests they let pass. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { RequestRule } from '../../../shared/contract/runtime-request.ts'
import { coversRequest, MAX_RULED_PATH_CHARACTERS } from '../../../shared/request/request-rule.ts'
import { readRequest } from '../../../shared/request/validate.ts'

const request = (rule: unknown) =>
  readRequest(
    Buffer.from(
      JSON.stringify({
        execution: { kind: 'command', program: 'ls' },
        sandbox: { profile: 'linux_sandbox', network: { allow: ['a.example', rule] } },
      }),
    ),
    'task-1',
  )

const TOKEN = { secret: 'api-token', prefix: 'Bearer ' }

test('a rule is kept as it is, with its host in the normal form', () => {
  const rule = {
    ...{ host: 'API.example.com.:443', headers: { Authorization: TOKEN }, query: { key: { secret: 'k' } } },
    ...{ methods: ['GET'], paths: ['/v1/**'] },
  }
  expect(request(rule).sandbox.network).toMatchObject({
    allow: ['a.example', { ...rule, host: 'api.example.com:443' }],
  })
  const basic = { host: '*.example.com', basic: { user: 'git', secret: 'x' }, methods: null }
  expect(request(basic).sandbox.network).toMatchObject({ allow: ['a.example', { host: '*.example.com' }] })
})

describe('refuses with the field', () => {
  const AT = 'sandbox.network.allow[1]'
  test.each<[unknown, string]>([
    [7, `invalid JSON: ${AT}: expected string, or object with host, got number`],
    [{}, `${AT}: expected host`],
    [{ host: 'a', hedaers: {} }, `unknown field "${AT}.hedaers" (did you mean ${AT}.headers?)`],
    [{ host: 'a', headers: [] }, `invalid JSON: ${AT}.headers: expected object of names of headers, got array`],
    [
      { host: 'a', headers: { X: 'y' } },
      `invalid JSON: ${AT}.headers.X: expected object with secret, and prefix, got string`,
    ],
    [{ host: 'a', headers: { X: {} } }, `invalid JSON: ${AT}.headers.X.secret: expected string, got null`],
    [{ host: 'a', headers: { X: { secret: 'y', sufix: '' } } }, `unknown field "${AT}.headers.X.sufix"`],
    [{ host: 'a', headers: { X: { secret: '../y' } } }, `${AT}: headers.X.secret: the name of a secret has 1 to 128 `],
    [
      { host: 'a', headers: { X: { secret: 'y', prefix: 'a\r\nB: c' } } },
      `${AT}: headers.X.prefix: expected one line of ASCII`,
    ],
    [{ host: 'a', headers: { 'X:': TOKEN } }, `${AT}: headers."X:": expected the name of a header`],
    [{ host: 'a', headers: { host: TOKEN } }, `${AT}: headers.host: the proxy writes this header itself`],
    [{ host: 'a', headers: { 'Transfer-Encoding': TOKEN } }, `${AT}: headers.Transfer-Encoding: the proxy writes`],
    [{ host: 'a', headers: { 'accept-encoding': TOKEN } }, `${AT}: headers.accept-encoding: the proxy writes`],
    [{ host: 'a', headers: { 'X-A': TOKEN, 'x-a': TOKEN } }, `${AT}: headers.X-A: expected each header once`],
    [{ host: 'a', basic: { secret: 'y' } }, `${AT}: basic.user: expected one line of ASCII without ":"`],
    [{ host: 'a', basic: { user: 'u:v', secret: 'y' } }, `${AT}: basic.user: expected one line of ASCII without ":"`],
    [{ host: 'a', basic: { user: 'u' } }, `${AT}: basic.secret: the name of a secret has`],
    [
      { host: 'a', basic: { user: 'u', secret: 'y' }, headers: { authorization: TOKEN } },
      `${AT}: basic: headers has Authorization, too`,
    ],
    [{ host: 'a', query: { '': TOKEN } }, `${AT}: query: expected names of parameters that are not empty`],
    [{ host: 'a', methods: [] }, `${AT}: methods: expected at least one (leave it out to let all pass)`],
    [{ host: 'a', methods: ['get'] }, `${AT}: methods[0]: expected a method in capital letters (GET)`],
    [{ host: 'a', paths: [1] }, `invalid JSON: ${AT}.paths[0]: expected string, got number`],
    [{ host: 'a', paths: ['v1'] }, `${AT}: paths[0]: expected a path that begins with "/", without query (/v1/**)`],
    [{ host: 'a', paths: ['/v1?x'] }, `${AT}: paths[0]: expected a path`],
    [{ host: 'https://a' }, `${AT}: expected a host, not a URL`],
    [{ host: 'a opaque' }, `${AT}: expected a name, an address or a network`],
    [{ host: 'a', paths: [`/${'x'.repeat(20_000)}`] }, 'sandbox.network: all rules together have'],
  ])('%j', (rule, message) => {
    expect(() => request(rule)).toThrow(message)
  })
})

describe('paths', () => {
  const passes = (pattern: string, path: string) =>
    coversRequest({ host: 'a', paths: ['/other', pattern] } satisfies RequestRule, 'GET', path)

  test.each([
    ['/v1', '/v1'],
    ['/v1/*', '/v1/'],
    ['/v1/*', '/v1/a.b'],
    ['/v1/*/c', '/v1/ab/c'],
    ['/v1/**', '/v1/a/b/c'],
    ['/**', '/'],
    ['/**/c', '/a/b/c'],
    ['/a*b*c', '/aXbXbXc'],
    ['/**/x*y/z', '/x/xa/xby/z'],
    ['/@scope%2fname', '/@scope%2fname'],
    ['/v1/...', '/v1/...'],
  ])('%s lets %s pass', (pattern, path) => {
    expect(passes(pattern, path)).toBe(true)
  })

  test.each([
    ['/v1', '/v1/'],
    ['/v1', '/v1x'],
    ['/v1/*', '/v1/a/b'],
    ['/v1/*', '/v1/a%2fb'],
    ['/v1/*', '/v1/a%5Cb'],
    ['/v1/*', '/v1/a\\b'],
    ['/v1/**', '/v1'],
    ['/v1/**', '/V1/a'],
    ['/v1/**', '/v1/../admin'],
    ['/v1/**', '/v1/..'],
    ['/v1/**', '/v1/./a'],
    ['/v1/**', '/v1/%2e%2E/admin'],
    ['/v1/**', '/v1/.%2e/admin'],
    ['/v1/**', '/v1/..;x=y/admin'],
    ['/v1/**', '/v1/..%3bx/admin'],
    ['/v1/**', '/v1/..%00/admin'],
    ['/v1/**', '/v1/a%2f..%2f..%2fadmin'],
    ['/v1/**', '/v1/a\\..\\..\\admin'],
    ['/**', `/${'x'.repeat(MAX_RULED_PATH_CHARACTERS)}`],
  ])('%s does not let %s pass', (pattern, path) => {
    expect(passes(pattern, path)).toBe(false)
  })

  test('as a regular expression finds it', () => {
    const pattern = fc.array(fc.constantFrom('a', 'b', '/', '*', '**'), { maxLength: 8 })
    const path = fc.array(fc.constantFrom('a', 'b', '/'), { maxLength: 10 })
    fc.assert(
      fc.property(pattern, path, (parts, characters) => {
        const text = `/${parts.join('')}`
        const source = text.replace(/\*\*+|\*/g, (stars) => (stars === '*' ? '[^/]*' : '.*'))
        const given = `/${characters.join('')}`
        expect(passes(text, given)).toBe(new RegExp(`^${source}$`).test(given))
      }),
      { numRuns: 500 },
    )
  })
})

test('a method that is not named does not pass', () => {
  const rule = { host: 'a', methods: ['GET', 'HEAD'], paths: ['/a'] }
  expect(coversRequest(rule, 'GET', '/a')).toBe(true)
  expect(coversRequest(rule, 'POST', '/a')).toBe(false)
  expect(coversRequest(rule, 'GET', '/b')).toBe(false)
})
