/** Signing in to the dashboard, against the built service and client. Source: docs/security.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_FAILED_SIGN_INS } from '../../control/http/failed-sign-ins.ts'
import type { AuditRecord } from '../../shared/contract/audit.ts'
import { RIGHTS } from '../../shared/contract/rights.ts'
import { MAX_SESSION_BODY_BYTES, SessionLink, SessionResponse } from '../../shared/contract/session.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { tempDir } from '../support/temp.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const TOKENS = {
  ada: { rights: ['read', 'submit', 'cancel_own'] },
  ops: { rights: ['operate'] },
  wile: { rights: ['read'], tenant: 'acme' },
} as const

let tokens: Tokens
let control: Control

beforeAll(async () => {
  tokens = tokensFile(TOKENS)
  control = await startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
})
afterAll(async () => {
  await control.dispose()
  tokens[Symbol.dispose]()
})

type Headers_ = Readonly<Record<string, string>>

const send = (method: string, path: string, headers: Headers_ = {}, body?: object) =>
  control.fetch(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })

const cookieOf = (answer: Response): string => answer.headers.get('set-cookie')!.split(';')[0]!

/** Signs in as the page does. The headers of its further requests, without those that browsers add to changes. */
async function signedIn(body: object = { token: 'token-of-ada' }): Promise<{ cookie: string }> {
  const answer = await send('POST', '/session', { origin: control.url }, body)
  expect(answer.status).toBe(200)
  return { cookie: cookieOf(answer) }
}

const whoIs = async (headers: Headers_) =>
  checkedAnswer<SessionResponse>(SessionResponse, await (await send('GET', '/session', headers)).json())

const errorOf = async (answer: Response): Promise<unknown[]> => [
  answer.status,
  ((await answer.json()) as { error: string }).error,
]

const GRAPH = { scope: 'graph', tasks: [{ id: 'a', type: 'noop' }] }

describe('signing in', () => {
  test.each([
    ['a token in the body', {}, { token: 'token-of-ada' }, { name: 'ada', rights: TOKENS.ada.rights }],
    ['a token in the header', { authorization: 'Bearer token-of-ada' }, undefined, { name: 'ada' }],
    ['a token of a tenant', {}, { token: 'token-of-wile' }, { name: 'wile', tenant: 'acme' }],
    ['the token of the service', {}, { token: 'sesame' }, { rights: [...RIGHTS] }],
  ] as const)('with %s sets a cookie that no script reads', async (_, headers, body, expected) => {
    const answer = await send('POST', '/session', headers, body)
    const session = checkedAnswer<SessionResponse>(SessionResponse, await answer.json())
    expect(session).toMatchObject({ by: 'session', ...expected } as object)
    const port = new URL(control.url).port
    expect(answer.headers.get('set-cookie')).toMatch(
      new RegExp(`^taskmill-session-${port}=[\\w-]{43}; Path=/; Max-Age=43[12]\\d\\d; HttpOnly; SameSite=Strict$`),
    )
    expect(Date.parse(session.expires!) - Date.now()).toBeWithin(11.9 * 3_600_000, 12 * 3_600_000 + 1)
    expect(await whoIs({ cookie: cookieOf(answer) })).toEqual(session)
  })

  test.each([
    [{ token: 'token-of-eve' }, 401, 'the token is wrong, revoked or expired'],
    [{ code: 'x'.repeat(43) }, 401, 'the link was used, or is older than 60 s (make another with taskmill open)'],
    [{}, 400, 'sign in with one of both'],
    [{ token: 'token-of-ada', code: 'x' }, 400, 'sign in with one of both'],
    [{ token: 1 }, 400, 'invalid JSON: token: expected string'],
    [{ tokem: 'x' }, 400, 'unknown field "tokem" (did you mean "token"?)'],
    [{ token: 'x'.repeat(MAX_SESSION_BODY_BYTES) }, 413, `request body is larger than ${MAX_SESSION_BODY_BYTES} bytes`],
  ])('with something else, %#, gets %d', async (body, status, text) => {
    const answer = await send('POST', '/session', {}, body)
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(await errorOf(answer)).toEqual([status, expect.stringContaining(text.slice(0, 60))])
  })

  test('from another web site is refused', async () => {
    for (const headers of [{ origin: 'http://evil.com' }, { 'sec-fetch-site': 'cross-site' }] as Headers_[])
      expect((await send('POST', '/session', headers, { token: 'token-of-ada' })).status).toBe(403)
  })

  test('ends the session before', async () => {
    const first = await signedIn()
    await send('POST', '/session', { origin: control.url, ...first }, { token: 'token-of-ada' })
    expect((await send('GET', '/session', first)).status).toBe(401)
  })
})

describe('a session', () => {
  test('may what its token may', async () => {
    const cookie = await signedIn()
    expect((await send('GET', '/graphs', cookie)).status).toBe(200)
    const own = { ...cookie, origin: control.url }
    const answer = await send('POST', '/tasks', own, GRAPH)
    expect(answer.status).toBe(202)
    const { graph_id } = (await answer.json()) as { graph_id: string }
    expect(await (await send('GET', `/graphs/${graph_id}`, cookie)).json()).toMatchObject({ submitted_by: 'ada' })
    expect(await errorOf(await send('DELETE', `/graphs/${graph_id}`, own))).toEqual([
      ...[403, expect.stringContaining('the token ada lacks the right operate')],
    ])
  })

  test.each([
    [{}, 403],
    [{ origin: 'http://evil.com' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'http://127.0.0.1:1' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'none' }, 403],
    [{ 'sec-fetch-site': 'same-origin' }, 202],
  ] as [Headers_, number][])('changes nothing unless the page asks for it: %j gets %d', async (headers, status) => {
    const answer = await send('POST', '/tasks', { ...(await signedIn()), ...headers }, GRAPH)
    expect(answer.status).toBe(status)
    if (status === 403)
      expect((await errorOf(answer))[1]).toBe(
        'with a session, changes are allowed to the page of this service only (use a token)',
      )
  })

  test('opens neither MCP, nor the adapter, nor further sessions', async () => {
    const headers = { ...(await signedIn()), origin: control.url }
    for (const path of ['/mcp', '/mcp/call', '/adapters/actions', '/session/links'])
      expect([path, (await send('POST', path, headers, {})).status]).toEqual([path, 401])
    expect((await send('GET', '/mcp/tools', headers)).status).toBe(401)
  })

  test('counts for nothing beside a token', async () => {
    const cookie = await signedIn()
    expect((await send('GET', '/graphs', { ...cookie, authorization: 'Bearer wrong' })).status).toBe(401)
    expect(await whoIs({ ...cookie, authorization: 'Bearer token-of-ops' })).toMatchObject({ by: 'token', name: 'ops' })
    expect((await send('POST', '/tasks', { ...cookie, ...tokens.as('ada') }, GRAPH)).status).toBe(202)
  })

  test('ends when somebody signs out, with what it reads', async () => {
    for (const token of ['token-of-ada', 'sesame']) {
      const cookie = await signedIn({ token })
      await using stream = await EventStreamClient.open(`${control.url}/events`, cookie)
      expect((await send('DELETE', '/session', cookie)).status).toBe(403)
      const answer = await send('DELETE', '/session', { ...cookie, origin: control.url })
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([
        204,
        expect.stringContaining('=; Path=/; Max-Age=0;'),
      ])
      await until(() => stream.hasEnded, true)
      expect((await send('GET', '/graphs', cookie)).status).toBe(401)
    }
  })

  test('ends with its token', async () => {
    tokens.put({ ...TOKENS, late: { rights: ['read'] } })
    await until(async () => (await send('GET', '/graphs', tokens.as('late'))).status, 200)
    const cookie = await signedIn({ token: 'token-of-late' })
    tokens.put(TOKENS)
    await until(async () => (await send('GET', '/graphs', cookie)).status, 401)
  })
})

describe('a link', () => {
  test('signs in once, with the rights of the token that made it', async () => {
    const link = await send('POST', '/session/links', tokens.as('ada'))
    const { code } = checkedAnswer<SessionLink>(SessionLink, await link.json())
    expect(await whoIs(await signedIn({ code }))).toMatchObject({ by: 'session', name: 'ada' })
    expect((await send('POST', '/session', {}, { code })).status).toBe(401)
    expect((await send('POST', '/session/links')).status).toBe(401)
  })

  test('is what taskmill open opens, or prints', async () => {
    const env = { SERVICE_TOKEN: 'token-of-ada' }
    const printed = await runClient(['open', '--print'], { url: control.url, env })
    const { url, expires, opened } = printed.envelope.data as { url: string; expires: string; opened: boolean }
    expect([url, opened]).toEqual([expect.stringMatching(new RegExp(`^${control.url}/#/sign-in/[\\w-]{43}$`)), false])
    expect(Date.parse(expires)).toBeGreaterThan(Date.now())
    expect(await whoIs(await signedIn({ code: url.split('/').at(-1)! }))).toMatchObject({ name: 'ada' })

    using dir = tempDir()
    const opener = join(dir.path, process.platform === 'darwin' ? 'open' : 'xdg-open')
    writeFileSync(opener, `#!/bin/sh\necho "$1" > '${dir.path}/opened'\n`)
    chmodSync(opener, 0o755)
    const run = await runClient(['open'], {
      url: control.url,
      env: { ...env, PATH: `${dir.path}:${process.env.PATH}` },
    })
    expect(run.envelope.data).toMatchObject({ opened: true })
    expect(readFileSync(join(dir.path, 'opened'), 'utf8').trim()).toBe((run.envelope.data as { url: string }).url)

    const none = await runClient(['open'], { url: control.url, env: { ...env, PATH: dir.path.slice(0, -1) } })
    expect([none.exitCode, none.envelope.data, none.stderr]).toEqual([
      ...[0, expect.objectContaining({ opened: false }), expect.stringContaining('open the url yourself')],
    ])
  })
})

test('signing in, out and failing to are in the audit log', async () => {
  await using fresh = await startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
  const ask = (method: string, headers: Headers_, body?: object) =>
    fresh.fetch('/session', { method, headers, ...(body && { body: JSON.stringify(body) }) })
  await ask('POST', {}, { token: 'wrong' })
  const cookie = cookieOf(await ask('POST', {}, { token: 'token-of-ada' }))
  await ask('DELETE', { cookie, origin: fresh.url })
  await fresh.fetch('/session/links', { method: 'POST', headers: tokens.as('ada') })
  const audit = await fresh.fetch('/audit', { headers: tokens.as('ops') })
  const { records } = (await audit.json()) as { records: AuditRecord[] }
  expect(records.map(({ by, what, target, status }) => [by, what, target, status])).toEqual([
    ['ada', 'POST /session/links', '/session/links', 200],
    ['ada', 'DELETE /session', '/session', 204],
    ['ada', 'POST /session', '/session', 200],
    [undefined, 'POST /session', '/session', 401],
  ])
})

test('whoever fails to sign in too often has to wait', async () => {
  await using fresh = await startControl({ env: { SERVICE_TOKEN: 'sesame' } })
  const signIn = (token: string) => fresh.fetch('/session', { method: 'POST', body: JSON.stringify({ token }) })
  for (let i = 0; i < MAX_FAILED_SIGN_INS; i++) expect((await signIn('wrong')).status).toBe(401)
  const answer = await signIn('sesame')
  expect(Number(answer.headers.get('retry-after'))).toBeWithin(1, 61)
  expect(await errorOf(answer)).toEqual([429, expect.stringMatching(/^too many attempts .* try again in \d+ s$/)])
  expect((await fresh.fetch('/graphs', { headers: { authorization: 'Bearer sesame' } })).status).toBe(200)
})

test('where no token is needed, nobody signs in, and everybody may everything', async () => {
  await using open = await startControl()
  expect(await (await open.fetch('/session')).json()).toEqual({ by: 'open', rights: [...RIGHTS] })
  expect((await open.fetch('/session', { method: 'POST', body: '{"token": "x"}' })).status).toBe(400)
  expect((await open.fetch('/session', { method: 'DELETE' })).status).toBe(204)
  const { envelope } = await runClient(['open', '--print'], { url: open.url })
  expect(envelope.data).toEqual({ url: `${open.url}/`, opened: false })
})

test('a session lasts as long as --session-ttl says', async () => {
  await using short = await startControl({ flags: ['--session-ttl', '1m'], env: { SERVICE_TOKEN: 'sesame' } })
  const answer = await short.fetch('/session', { method: 'POST', body: '{"token": "sesame"}' })
  expect(answer.headers.get('set-cookie')).toMatch(/Max-Age=(59|60);/)
})
