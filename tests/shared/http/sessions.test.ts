import { describe, expect, test } from 'bun:test'
import type { Caller } from '../../../shared/http/callers.ts'
import { sessionCookie, sessionCookieIn } from '../../../shared/http/session-cookie.ts'
import { MAX_SESSIONS_OF_TOKEN, MAX_SIGN_IN_LINKS, Sessions, SIGN_IN_LINK_MS } from '../../../shared/http/sessions.ts'
import { until } from '../../support/until.ts'

const HOUR_MS = 3_600_000

function world(ttlMs = HOUR_MS) {
  const ending = new AbortController()
  const caller: Caller = { grant: { name: 'ada', rights: ['read'] }, signal: ending.signal }
  const sessions = new Sessions((token) => (token === 'of-ada' ? { caller } : undefined), ttlMs)
  return { sessions, caller, revoke: () => ending.abort() }
}

describe('a session', () => {
  test('is found by the value of its cookie until somebody signs out', () => {
    const { sessions, caller } = world()
    const { value, session } = sessions.begin({ caller })
    expect(value).toMatch(/^[\w-]{43}$/)
    expect(sessions.find(value)?.caller).toBe(caller)
    for (const other of [undefined, '', 'x'.repeat(43), `${value}x`]) expect(sessions.find(other)).toBeUndefined()
    sessions.end(value)
    expect([sessions.find(value), session.signal.aborted]).toEqual([undefined, true])
    sessions.end(value)
  })

  test('ends with its token', () => {
    const { sessions, caller, revoke } = world()
    const [one, other] = [sessions.begin({ caller }), sessions.begin({ caller: undefined })]
    revoke()
    expect([one.session.signal.aborted, sessions.find(one.value)]).toEqual([true, undefined])
    expect(sessions.find(other.value)?.caller).toBeUndefined()
    expect(other.session.signal.aborted).toBe(false)
  })

  test('ends at its time, and at the expiry of its token if that is sooner', async () => {
    const { sessions, caller } = world(50)
    const { value, session } = sessions.begin({ caller })
    await until(() => session.signal.aborted, true)
    expect(sessions.find(value)).toBeUndefined()
    const expiresAt = Date.now() + 60_000
    expect(world().sessions.begin({ caller: { ...caller, expiresAt } }).session.expiresAt).toBe(expiresAt)
  })

  test(`beyond MAX_SESSIONS_OF_TOKEN ends the oldest of the same token`, () => {
    const { sessions, caller } = world()
    const other = sessions.begin({ caller: undefined })
    const own = Array.from({ length: MAX_SESSIONS_OF_TOKEN + 1 }, () => sessions.begin({ caller }))
    expect(own.map(({ session }) => session.signal.aborted)).toEqual([
      true,
      ...Array(MAX_SESSIONS_OF_TOKEN).fill(false),
    ])
    expect(sessions.find(other.value)).toBeDefined()
  })
})

describe('a link', () => {
  test('works once', () => {
    const { sessions, caller } = world()
    const { code, expiresAt } = sessions.newLink({ caller })
    expect(expiresAt - Date.now()).toBeWithin(SIGN_IN_LINK_MS - 5_000, SIGN_IN_LINK_MS + 1)
    expect(sessions.useLink('x'.repeat(43))).toBeUndefined()
    expect(sessions.useLink(code)?.caller).toBe(caller)
    expect(sessions.useLink(code)).toBeUndefined()
  })

  test('of a token that was revoked or has expired does not work', () => {
    const { sessions, caller, revoke } = world()
    const late = sessions.newLink({ caller: { ...caller, expiresAt: Date.now() - 1 } })
    expect(sessions.useLink(late.code)).toBeUndefined()
    const { code } = sessions.newLink({ caller })
    revoke()
    expect(sessions.useLink(code)).toBeUndefined()
  })

  test('beyond MAX_SIGN_IN_LINKS voids the oldest', () => {
    const { sessions, caller } = world()
    const codes = Array.from({ length: MAX_SIGN_IN_LINKS + 1 }, () => sessions.newLink({ caller }).code)
    const good = codes.map((code) => sessions.useLink(code) !== undefined)
    expect(good).toEqual([false, ...Array(MAX_SIGN_IN_LINKS).fill(true)])
  })
})

describe('the cookie', () => {
  const value = 'v'.repeat(43)
  const headersOf = (more: Record<string, string> = {}) => new Headers({ host: '127.0.0.1:8080', ...more })

  test('is for the port of the page, and for nobody else', () => {
    expect(sessionCookie(headersOf(), value, 60)).toBe(
      `taskmill-session-8080=${value}; Path=/; Max-Age=60; HttpOnly; SameSite=Strict`,
    )
    expect(sessionCookie(new Headers({ host: 'mill.example.com' }), '', 0)).toStartWith('taskmill-session=; Path=/')
    const cookie = `a=b; taskmill-session-8081=${'w'.repeat(43)}; taskmill-session-8080=${value}`
    expect(sessionCookieIn(headersOf({ cookie }))).toBe(value)
    expect(sessionCookieIn(new Headers({ host: '[::1]:8081', cookie }))).toBe('w'.repeat(43))
  })

  test.each([
    [{ origin: 'https://mill.example.com' }, true],
    [{ 'x-forwarded-proto': 'https' }, true],
    [{ 'x-forwarded-proto': 'HTTPS, http' }, true],
    [{ 'x-forwarded-proto': 'http, https' }, false],
    [{ origin: 'http://127.0.0.1:8080' }, false],
    [{}, false],
  ] as [Record<string, string>, boolean][])('with %j is Secure: %p', (headers, isSecure) => {
    expect(sessionCookie(headersOf(headers), value, 60).endsWith('; Secure')).toBe(isSecure)
  })

  test.each([
    '',
    'taskmill-session-8080',
    'taskmill-session-8080=',
    `taskmill-session-8080=${'v'.repeat(44)}`,
    `taskmill-session-8080="${value}"`,
    `taskmill-session=${value}`,
    `Xtaskmill-session-8080=${value}`,
  ])('%j has no session', (cookie) => {
    expect(sessionCookieIn(headersOf({ cookie }))).toBeUndefined()
  })
})
