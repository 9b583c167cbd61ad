/** Error bodies of the runtime: 404, 405, 413 and what every refusal looks like. Source: spec, Errors B; contract 2 and 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Control } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, type Refused, refused, SLEEP } from '../support/runtime-tasks.ts'
import { RawClient } from './raw-client.ts'

const MAX_BODY_BYTES = 4096
const TASKS = '/api/v1/tasks'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({
    flags: [
      '--max-body-bytes',
      String(MAX_BODY_BYTES),
      '--capacity-memory-bytes',
      '1000000',
      '--disable-linux-sandbox',
    ],
  })
  await runtime.submit({ task_id: 'known', ...command('/bin/true') })
  await runtime.submit({ task_id: 'owned', ...SLEEP, control_context: { owner: 'a' } })
  await runtime.ended('known')
})
afterAll(() => runtime.dispose())

const strict = { sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } }

type Refusal = [status: number, code: string, method: string, path: string, body: string | null]
const REFUSALS: Refusal[] = [
  [400, 'invalid_input', 'POST', TASKS, '{"execution": '],
  [400, 'invalid_input', 'POST', TASKS, '{}'],
  [400, 'unsupported_capability', 'POST', TASKS, JSON.stringify({ ...SLEEP, ...strict })],
  [400, 'insufficient_resources', 'POST', TASKS, JSON.stringify({ ...SLEEP, limits: { memory_bytes: 1_000_001 } })],
  [409, 'conflict', 'POST', TASKS, JSON.stringify({ task_id: 'known', ...SLEEP })],
  [413, 'payload_too_large', 'POST', TASKS, ' '.repeat(MAX_BODY_BYTES + 1)],
  [403, 'permission_denied', 'POST', `${TASKS}/owned/kill`, null],
  [404, 'not_found', 'GET', `${TASKS}/unknown`, null],
  [404, 'not_found', 'POST', `${TASKS}/unknown/kill`, null],
  [404, 'not_found', 'GET', '/api/v1/nowhere', null],
  [405, 'method_not_allowed', 'PUT', TASKS, '{}'],
  [405, 'method_not_allowed', 'PATCH', `${TASKS}/known`, null],
]

const ask = (method: string, path: string, body: string | null) => runtime.fetch(path, { method, body })

test.each(REFUSALS)(
  'an error body is { error: { code, message, details } }, details always there: %d %s',
  async (status, code, method, path, body) => {
    const response = await ask(method, path, body)
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    const { error } = (await response.json()) as Refused
    expect(Object.keys(error).toSorted()).toEqual(['code', 'details', 'message'])
    expect(error.code).toBe(code)
    expect(error.message).toMatch(/[a-z]{3}/)
    expect(error.message).not.toMatch(/\n|\bat \/|node_modules|<html|SQLITE/i)
  },
)

describe('404 not_found', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/api/v1/tasks/known/nothing'],
    ['GET', '/HEALTHZ'],
    ['PATCH', '/a/b/c'],
  ])('of an unknown path: %s %s', async (method, path) => {
    expect((await refused(await runtime.fetch(path, { method }))).slice(0, 2)).toEqual([404, 'not_found'])
  })
})

describe('405 method_not_allowed', () => {
  test.each([
    [TASKS, ['GET', 'POST']],
    [`${TASKS}/known`, ['DELETE', 'GET']],
    [`${TASKS}/unknown`, ['DELETE', 'GET']],
    [`${TASKS}/known/kill`, ['POST']],
    [`${TASKS}/known/events`, ['GET']],
    [`${TASKS}/known/logs`, ['GET']],
    ['/api/v1/runtime/info', ['GET']],
    ['/api/v1/runtime/capabilities', ['GET']],
    ['/api/v1/runtime/config', ['GET']],
    ['/api/v1/runtime/resources', ['GET']],
    ['/healthz', ['GET']],
    ['/readyz', ['GET']],
    ['/metrics', ['GET']],
  ])('of a known path with another method, and Allow names those that are: %s', async (path, allowed) => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((name) => !allowed.includes(name))) {
      const response = await runtime.fetch(path, { method })
      const allow = (response.headers.get('allow') ?? '').split(/\s*,\s*/)
      expect([method, ...(await refused(response)).slice(0, 2)]).toEqual([method, 405, 'method_not_allowed'])
      expect(allow.filter((name) => !['HEAD', 'OPTIONS'].includes(name)).toSorted()).toEqual(allowed)
    }
    expect((await runtime.get('known')).status).toBe('success')
  })
})

describe('413 payload_too_large', () => {
  const body = (bytes: number) => {
    const text = JSON.stringify({ execution: { kind: 'script', script: 'true #' } })
    return text.replace('#', '#'.repeat(bytes - text.length + 1))
  }

  test('above --max-body-bytes, not at it', async () => {
    expect(body(MAX_BODY_BYTES).length).toBe(MAX_BODY_BYTES)
    expect((await runtime.post(body(MAX_BODY_BYTES))).status).toBe(200)
    expect((await refused(await runtime.post(body(MAX_BODY_BYTES + 1))))[0]).toBe(413)
  })

  test('whether the length is announced or not', async () => {
    const stream = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 20; i++) controller.enqueue(new TextEncoder().encode(' '.repeat(1000)))
        controller.close()
      },
    })
    const answer = await refused(await runtime.fetch(TASKS, { method: 'POST', body: stream }))
    expect(answer.slice(0, 2)).toEqual([413, 'payload_too_large'])
  })

  test('is 16 MiB by default', async () => {
    await using other = await startRuntime()
    expect((await refused(await other.post(' '.repeat(16 * 1024 * 1024))))[0]).toBe(400)
    expect((await refused(await other.post(' '.repeat(16 * 1024 * 1024 + 1))))[0]).toBe(413)
  })
})

test.each(['%zz', '%c3%28'])('a path that is not well encoded has an error body, too: %s', async (part) => {
  using client = await RawClient.connect({ url: runtime.url } as Control)
  client.send(`GET ${TASKS}/${part} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
  await client.closed
  expect(client.received).toMatch(/^HTTP\/1\.1 4(00|04) /)
  const { error } = JSON.parse(client.received.split('\r\n\r\n')[1]!) as Refused
  expect(Object.keys(error).toSorted()).toEqual(['code', 'details', 'message'])
})

test('JSON that is deeply nested is refused or read, and the service lives on', async () => {
  await using other = await startRuntime()
  const deep = `{"execution":{"kind":"script","script":"true"},"metadata":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  expect((await refused(await other.post(deep)))[0]).toBe(400)
  expect((await other.fetch('/healthz')).status).toBe(200)
})
