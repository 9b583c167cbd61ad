/** The runtime must not obey web pages, and with a token it obeys nobody without. Source: contract 4 and 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SubmitTaskResponse, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { Control } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { startTokenRuntime, TOKEN, WITH_TOKEN } from '../support/token-runtime.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

const TASKS = '/api/v1/tasks'
const BODY = JSON.stringify(command('/bin/true'))

/** Status and error code of a request with exactly these header lines. */
async function raw(service: { url: string }, start: string, lines: readonly string[], body = '') {
  using client = await RawClient.connect({ url: service.url } as Control)
  client.send([start, ...lines, `Content-Length: ${body.length}`, 'Connection: close', '', body].join('\r\n'))
  await client.closed
  const [head, answer] = client.received.split('\r\n\r\n')
  const json = JSON.parse(answer || '{}') as { error?: { code: string; details: unknown } }
  if (json.error !== undefined) expect(json.error).toHaveProperty('details')
  return [Number(head!.split(' ')[1]), json.error?.code]
}

describe('without a token', () => {
  let runtime: Runtime
  beforeAll(async () => {
    runtime = await startRuntime()
  })
  afterAll(() => runtime.dispose())

  test('a page that lets its own name point to us is refused: 403 permission_denied', async () => {
    const get = (path: string, host: string) => raw(runtime, `GET ${path} HTTP/1.1`, [`Host: ${host}`])
    expect(await get(TASKS, 'evil.com:18080')).toEqual([403, 'permission_denied'])
    expect(await get('/metrics', 'evil.com')).toEqual([403, 'permission_denied'])
    expect(await raw(runtime, `POST ${TASKS} HTTP/1.1`, ['Host: evil.com'], BODY)).toEqual([403, 'permission_denied'])
    expect(await get('/healthz', 'evil.com')).toEqual([200, undefined])
    expect(await get('/readyz', 'evil.com')).toEqual([200, undefined])
    expect(await raw(runtime, `GET ${TASKS} HTTP/1.0`, [])).toEqual([200, undefined])
    expect(await runtime.json<unknown>(TASKS)).toEqual({ tasks: [] })
  })

  test('a form or script of another page is refused, one of our own is not', async () => {
    const { host } = new URL(runtime.url)
    const post = (lines: string[]) => raw(runtime, `POST ${TASKS} HTTP/1.1`, [`Host: ${host}`, ...lines], BODY)
    expect(await post(['Origin: http://evil.com', 'Content-Type: text/plain'])).toEqual([403, 'permission_denied'])
    expect(await post(['Origin: null'])).toEqual([403, 'permission_denied'])
    expect(await post(['Origin: http://127.0.0.1:1'])).toEqual([403, 'permission_denied'])
    expect(await post(['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors'])).toEqual([403, 'permission_denied'])
    expect(await runtime.json<unknown>(TASKS)).toEqual({ tasks: [] })
    expect((await post([`Origin: http://${host}`, 'Sec-Fetch-Site: same-origin']))[0]).toBe(200)
    expect((await post([`Origin: https://${host}`]))[0]).toBe(200)
  })

  test('a kill by another page is refused', async () => {
    const id = await runtime.submit(command('/bin/sleep', '600'))
    const answer = await raw(runtime, `POST ${TASKS}/${id}/kill HTTP/1.1`, [
      'Host: localhost',
      'Origin: http://evil.com',
    ])
    expect(answer).toEqual([403, 'permission_denied'])
    expect(await runtime.eventTypes(id)).not.toContain('kill_requested')
  })

  test('--allowed-host lets names through, as Host and as Origin', async () => {
    await using runtime = await startRuntime({
      flags: ['--allowed-host', 'a.example.com', '--allowed-host=b.example.com'],
    })
    const host = async (name: string) => (await raw(runtime, `GET ${TASKS} HTTP/1.1`, [`Host: ${name}`]))[0]
    expect([await host('a.example.com'), await host('b.example.com:80'), await host('c.example.com')]).toEqual([
      200, 200, 403,
    ])
    const lines = ['Host: localhost', 'Origin: https://a.example.com']
    expect((await raw(runtime, `GET ${TASKS} HTTP/1.1`, lines))[0]).toBe(200)
  })

  test('listening beyond loopback logs a warning', async () => {
    await using runtime = await startRuntime({ flags: ['--listen-addr', '0.0.0.0:0'] })
    await until(
      () => runtime.log.filter(({ level }) => level === 'warn').map(({ msg }) => String(msg)),
      (warnings) => warnings.some((msg) => /loopback/.test(msg)),
    )
    await using local = await startRuntime()
    expect(local.log.filter(({ level, msg }) => level === 'warn' && /loopback/.test(String(msg)))).toEqual([])
  })
})

describe('with a token', () => {
  test('everything but health and readiness needs it: 401 unauthenticated', async () => {
    await using runtime = await startTokenRuntime()
    const id = (
      (await (
        await runtime.fetch(TASKS, { method: 'POST', body: BODY, headers: WITH_TOKEN })
      ).json()) as SubmitTaskResponse
    ).task_id
    const routes: [string, string][] = [
      ...(['', '/events', '/logs', '/no/such/path'].map((path) => ['GET', `${TASKS}/${id}${path}`]) as [
        string,
        string,
      ][]),
      ...(['info', 'capabilities', 'config', 'resources'].map((name) => ['GET', `/api/v1/runtime/${name}`]) as [
        string,
        string,
      ][]),
      ['GET', TASKS],
      ['POST', TASKS],
      ['POST', `${TASKS}/${id}/kill`],
      ['GET', '/metrics'],
      ['GET', '/no/such/path'],
    ]
    for (const [method, path] of routes) {
      for (const headers of [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: TOKEN },
        { authorization: `Basic ${TOKEN}` },
      ]) {
        const response = await runtime.fetch(path, { method, headers: headers as Record<string, string> })
        expect([method, path, ...(await refused(response)).slice(0, 2)]).toEqual([method, path, 401, 'unauthenticated'])
      }
    }
    for (const path of ['/healthz', '/readyz']) expect((await runtime.fetch(path)).status).toBe(200)
    for (const path of [TASKS, '/metrics', `${TASKS}/${id}`]) {
      expect((await runtime.fetch(path, { headers: WITH_TOKEN })).status).toBe(200)
    }
  })

  test('it may be in a file, which beats the variable, and never appears in the log', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'token')
    writeFileSync(file, `${TOKEN}\n`)
    const flags = ['--token-file', file, '--log-level', 'debug']
    await using runtime = await startTokenRuntime({ flags, env: { SERVICE_TOKEN: 'other-token' } })
    expect((await runtime.fetch(TASKS, { headers: WITH_TOKEN })).status).toBe(200)
    expect((await runtime.fetch(TASKS, { headers: { authorization: 'Bearer other-token' } })).status).toBe(401)
    await until(
      () => runtime.log.length,
      (length) => length > 1,
    )
    expect(JSON.stringify(runtime.log)).not.toMatch(/sesame|other-token/)
  })

  test.each([
    ['no such file', '/no/such/token'],
    ['an empty file', '/dev/null'],
  ])('%s stops the start, and says which', async (_, file) => {
    await expect(startRuntime({ flags: ['--token-file', file] })).rejects.toThrow(file)
  })

  test('tasks do not see it, neither theirs nor that of their launcher', async () => {
    await using runtime = await startTokenRuntime()
    const execution = { kind: 'script', script: 'env; cat /proc/$PPID/environ /proc/$PPID/cmdline' }
    const submitted = await runtime.fetch(TASKS, {
      method: 'POST',
      body: JSON.stringify({ execution }),
      headers: WITH_TOKEN,
    })
    const { task_id } = (await submitted.json()) as SubmitTaskResponse
    const wait = await runtime.fetch(`${TASKS}/${task_id}?wait_ms=20000`, { headers: WITH_TOKEN })
    const task = (await wait.json()) as TaskStatusResponse
    expect(task.status).toBe('success')
    expect(task.stdout).toContain('PATH=')
    expect(JSON.stringify(task)).not.toContain(TOKEN)
  })
})
