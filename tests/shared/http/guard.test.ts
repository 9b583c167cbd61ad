/** The guard as a table: which requests pass, and what the others are told. */
import { describe, expect, test } from 'bun:test'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { CALLER_HEADER, type Caller, callerOf, passOnCaller } from '../../../shared/http/callers.ts'
import { createGuard, type Guard, hostNames, isLoopback } from '../../../shared/http/guard.ts'
import { Expected } from '../../../shared/settings/flags.ts'

const open = createGuard({
  token: undefined,
  allowedHosts: ['tasks.example.com', 'proxy.example.org:8443'],
  listeningHost: '127.0.0.1',
})
const closed = createGuard({ token: 'sesame', allowedHosts: [], listeningHost: 'box.example.net' })

/** The status of the refusal, or 'passes'. */
function judge(
  guard: typeof open,
  headers: Record<string, string>,
  { path = '/tasks', method = 'GET' } = {},
): number | 'passes' {
  try {
    // A Request of the standard takes no Host; the guard only reads method and headers.
    guard({ method, headers: new Headers(headers) } as Request, path)
    return 'passes'
  } catch (error) {
    if (error instanceof ServiceError) return error.status
    throw error
  }
}

describe('Host (without its port)', () => {
  test.each([
    '127.0.0.1:8080',
    '10.1.2.3',
    '[::1]:8080',
    '[2001:db8::1]',
    'localhost:8080',
    'LOCALHOST',
    'localhost.',
    'control',
    'control:8080',
    'box.local',
    'app.localhost:3000',
    'host.docker.internal',
    'control.prod.svc:80',
    'tasks.example.com',
    'TASKS.example.com.:8080',
    'proxy.example.org',
    '',
  ])('%j passes', (host) => {
    expect(judge(open, { host })).toBe('passes')
  })

  test.each([
    'evil.com',
    'evil.com:8080',
    '127.0.0.1.evil.com',
    'localhost.evil.com',
    'local.evil.com',
    'x.tasks.example.com',
    'tasks.example.com.evil.com',
    'evil.svc.cluster.example',
    '1.2.3.4.5',
  ])('%j is refused with 403', (host) => {
    expect(judge(open, { host })).toBe(403)
  })

  test('a missing one (HTTP/1.0) passes', () => {
    expect(judge(open, {})).toBe('passes')
  })

  test('the listening name passes', () => {
    const named = createGuard({ token: undefined, allowedHosts: [], listeningHost: 'box.example.net' })
    expect(judge(named, { host: 'box.example.net:8080' })).toBe('passes')
    expect(judge(named, { host: 'other.example.net' })).toBe(403)
  })
})

describe('Origin', () => {
  test.each([
    ['http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['https://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://localhost', 'localhost'],
    ['https://localhost', 'localhost'],
    ['http://localhost', 'localhost:80'],
    ['https://mill.local', 'mill.local:443'],
    ['http://[::1]', '[::1]:80'],
    ['http://[::1]:8080', '[::1]:8080'],
    ['https://tasks.example.com', 'localhost:8080'],
    ['https://tasks.example.com:444', '127.0.0.1:8080'],
  ])('%s passes with the Host %s', (origin, host) => {
    expect(judge(open, { origin, host }, { method: 'POST' })).toBe('passes')
  })

  test.each([
    ['http://evil.com', '127.0.0.1:8080'],
    ['http://127.0.0.1:9999', '127.0.0.1:8080'],
    ['http://localhost:8080', '127.0.0.1:8080'],
    ['http://localhost', 'localhost:8080'],
    ['http://localhost', 'localhost:443'],
    ['https://localhost', 'localhost:80'],
    ['ftp://localhost', 'localhost:21'],
    ['http://localhost:80', 'localhost:8080'],
    ['null', 'localhost:8080'],
    ['null', 'null'],
    ['', 'localhost:8080'],
    ['localhost:8080', 'localhost:8080'],
  ])('%j is refused with the Host %s', (origin, host) => {
    expect(judge(open, { origin, host }, { method: 'POST' })).toBe(403)
  })
})

describe('Sec-Fetch-Site: cross-site', () => {
  const headers = { host: 'localhost', 'sec-fetch-site': 'cross-site' }

  test('is refused but for GET navigations', () => {
    expect(judge(open, headers)).toBe(403)
    expect(judge(open, headers, { method: 'POST' })).toBe(403)
    expect(judge(open, { ...headers, 'sec-fetch-mode': 'navigate' }, { method: 'POST' })).toBe(403)
    expect(judge(open, { ...headers, 'sec-fetch-mode': 'navigate' })).toBe('passes')
  })

  test.each(['same-origin', 'same-site', 'none'])('%s passes', (site) => {
    expect(judge(open, { ...headers, 'sec-fetch-site': site })).toBe('passes')
  })
})

describe('with a token', () => {
  test('everything but probes and page shells needs it', () => {
    expect(judge(closed, { host: 'localhost' })).toBe(401)
    expect(judge(closed, { host: 'localhost', authorization: 'Bearer wrong' })).toBe(401)
    expect(judge(closed, { host: 'localhost', authorization: 'sesame' })).toBe(401)
    expect(judge(closed, { host: 'localhost', authorization: 'Basic sesame' })).toBe(401)
    expect(judge(closed, { host: 'localhost', authorization: 'Bearer sesame' })).toBe('passes')
    expect(judge(closed, { host: 'localhost', authorization: 'bearer  sesame' })).toBe('passes')
    for (const path of ['/', '/docs', '/openapi.json'])
      expect(judge(closed, { host: 'localhost' }, { path })).toBe('passes')
  })

  test('whoever has it passes Host, Origin and Sec-Fetch-Site', () => {
    const strange = { host: 'evil.com', origin: 'http://other.com', 'sec-fetch-site': 'cross-site' }
    expect(judge(closed, { ...strange, authorization: 'Bearer sesame' }, { method: 'POST' })).toBe('passes')
  })

  test('page shells still have to be asked for under a local name', () => {
    expect(judge(closed, { host: 'evil.com' }, { path: '/' })).toBe(403)
  })

  test('the answer says how to send it', () => {
    const ask = () => closed({ method: 'GET', headers: new Headers() } as Request, '/tasks')
    expect(ask).toThrow('a token is needed: send Authorization: Bearer <token>')
  })
})

describe('with tokens of callers', () => {
  const caller: Caller = { grant: { name: 'ci', rights: ['read'] }, signal: new AbortController().signal }
  const tokens = { callerWith: (token: string) => (token === 'of-ci' ? caller : undefined) }
  const common = { tokens, allowedHosts: [], listeningHost: '127.0.0.1' }
  const alone = createGuard({ ...common, token: undefined })
  const beside = createGuard({ ...common, token: 'sesame' })
  const replica = createGuard({ ...common, token: 'sesame', hasReplicas: true })

  const seen = (guard: Guard, headers: Record<string, string>, path = '/tasks') => {
    const request = new Request(`http://localhost${path}`, { headers: { host: 'localhost', ...headers } })
    guard(request, path)
    return callerOf(request)
  }
  const passedOn = (given: Caller | undefined) => {
    const headers = new Headers({ [CALLER_HEADER]: 'of the client' })
    passOnCaller(headers, given)
    return Object.fromEntries(headers)
  }

  test('the token says who it is, however its scheme is written', () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(seen(alone, { authorization: `${scheme} of-ci` })).toBe(caller)
    expect(seen(beside, { authorization: 'Bearer sesame' })).toBeUndefined()
    expect(seen(beside, { authorization: 'Bearer of-ci' })).toBe(caller)
  })

  test.each<Record<string, string>>([
    {},
    { authorization: 'Bearer of-cd' },
    { authorization: 'Basic of-ci' },
    { authorization: 'Bearer sesame' },
    { cookie: 'token=of-ci; authorization=Bearer%20of-ci' },
    { 'x-taskmill-caller': encodeURIComponent('{"name":"ci","rights":["read"]}') },
    { 'x-taskmill-hop': '1' },
  ])('nothing else is a token: %j', (headers) => {
    expect(() => seen(alone, headers)).toThrow(/token/)
    expect(() => seen(alone, headers, '/tasks?token=of-ci&access_token=of-ci')).toThrow(/token/)
  })

  test('a replica says for whom it asks, which only the token of the service lets it do', () => {
    const header = passedOn(caller)
    expect(seen(replica, { authorization: 'Bearer sesame', ...header })?.grant).toEqual(caller.grant)
    expect(seen(replica, { authorization: 'Bearer sesame', ...passedOn(undefined) })).toBeUndefined()
    const more = encodeURIComponent('{"name":"ci","rights":["operate"]}')
    expect(seen(replica, { authorization: 'Bearer of-ci', [CALLER_HEADER]: more })).toBe(caller)
    expect(() => seen(replica, { [CALLER_HEADER]: more })).toThrow('a token is needed')
    for (const damaged of ['', '%', '{}', encodeURIComponent('{"name":"ci","rights":["all"]}')])
      expect(() => seen(replica, { authorization: 'Bearer sesame', [CALLER_HEADER]: damaged })).toThrow(
        'invalid x-taskmill-caller',
      )
  })

  test('the same caller passed on again is the same, so that its quotas count', () => {
    const headers = { authorization: 'Bearer sesame', ...passedOn(caller) }
    expect(seen(replica, headers)).toBe(seen(replica, headers)!)
  })
})

describe('with a session', () => {
  const value = 's'.repeat(43)
  const session = { caller: undefined, expiresAt: 0, signal: new AbortController().signal }
  const sessions = { find: (given: string | undefined) => (given === value ? session : undefined) }
  const guard = createGuard({
    token: 'sesame',
    sessions,
    allowedHosts: ['mill.example.com'],
    listeningHost: '127.0.0.1',
  })
  const cookie = `taskmill-session-8080=${value}`
  const host = '127.0.0.1:8080'
  const change = (headers: Record<string, string>, path = '/tasks') =>
    judge(guard, { host, cookie, ...headers }, { method: 'POST', path })

  test('reading needs nothing else, under whatever name', () => {
    expect(judge(guard, { host, cookie })).toBe('passes')
    expect(judge(guard, { host: 'evil.com:8080', cookie, origin: 'http://x' })).toBe('passes')
    expect(judge(guard, { host, cookie: `taskmill-session-8080=${'t'.repeat(43)}` })).toBe(401)
    expect(judge(guard, { host: '127.0.0.1:8081', cookie })).toBe(401)
    expect(judge(guard, { host, cookie, authorization: 'Bearer wrong' })).toBe(401)
  })

  test.each<[Record<string, string>, number | 'passes']>([
    [{}, 403],
    [{ origin: '' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'http://127.0.0.1' }, 403],
    [{ origin: 'http://localhost:8080' }, 403],
    [{ origin: 'http://127.0.0.1:8080.evil.com' }, 403],
    [{ origin: 'http://evil.com', 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: 'http://127.0.0.1:8080' }, 'passes'],
    [{ origin: 'https://127.0.0.1:8080' }, 'passes'],
    [{ origin: 'https://mill.example.com' }, 'passes'],
    [{ origin: 'https://proxy.example.com', 'sec-fetch-site': 'same-origin' }, 'passes'],
    [{ 'sec-fetch-site': 'same-origin' }, 'passes'],
    [{ authorization: 'Bearer sesame', origin: 'http://evil.com' }, 'passes'],
  ])('a change with %j: %p', (headers, verdict) => {
    expect(change(headers)).toBe(verdict)
  })

  test.each(['/mcp', '/mcp/call', '/adapters/actions', '/session/links'])('%s takes a token', (path) => {
    expect(change({ origin: `http://${host}` }, path)).toBe(401)
    expect(change({ origin: `http://${host}`, authorization: 'Bearer sesame' }, path)).toBe('passes')
  })

  test('signing in needs no token, but no other web site does it', () => {
    const signIn = (headers: Record<string, string>) =>
      judge(guard, { host, ...headers }, { method: 'POST', path: '/session' })
    expect(signIn({})).toBe('passes')
    expect(signIn({ origin: `http://${host}` })).toBe('passes')
    expect(signIn({ origin: 'http://evil.com' })).toBe(403)
    expect(signIn({ 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(judge(guard, { host }, { path: '/session' })).toBe(401)
    expect(judge(closed, { host }, { method: 'POST', path: '/session' })).toBe(401)
  })
})

test.each(['/health', '/healthz', '/readyz'])('%s is exempt', (path) => {
  const strange = { host: 'evil.com', origin: 'http://evil.com', 'sec-fetch-site': 'cross-site' }
  expect(judge(open, strange, { path })).toBe('passes')
  expect(judge(closed, strange, { path })).toBe('passes')
})

test('names of hosts are told from what no Host could ever be', () => {
  const { parse } = hostNames({ value: 'name', help: '' })
  const hosts = ['a.example.com', 'my_host', 'x', 'a.example.com.', 'a:8080', '10.0.0.1', '[::1]:80', '::1', 'fd00::2']
  expect(parse(hosts.join(', '))).toEqual(hosts)
  for (const other of [
    'http://x',
    'x/y',
    'x y',
    '*.example.com',
    'ä.example.com',
    'a:port',
    'user@x',
    '.x',
    'a::b::g',
  ]) {
    expect([other, parse(`x,${other}`)]).toEqual([other, expect.any(Expected)])
  }
})

test('loopback is what only this machine reaches', () => {
  const names = ['127.0.0.1', '127.9.9.9', '::1', 'localhost', '0.0.0.0', '::', '10.0.0.1', 'example.com']
  expect(names.filter(isLoopback)).toEqual(['127.0.0.1', '127.9.9.9', '::1', 'localhost'])
})
