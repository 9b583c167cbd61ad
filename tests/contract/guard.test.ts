/** A service must not obey web pages, and with a token it obeys nobody without: against the built service. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

/** The status of a request with exactly these header lines. */
async function rawStatus(control: Control, start: string, lines: readonly string[], body = ''): Promise<number> {
  using client = await RawClient.connect(control)
  client.send([start, ...lines, `Content-Length: ${body.length}`, 'Connection: close', '', body].join('\r\n'))
  await client.closed
  return Number(client.received.split(' ')[1])
}

const graph = JSON.stringify({ tasks: [{ id: 'x', type: 'noop' }] })

describe('without a token', () => {
  let control: Control
  beforeAll(async () => {
    control = await startControl()
  })
  afterAll(() => control.dispose())

  test('a form or script of another page is refused, one of our own is not', async () => {
    const { host } = new URL(control.url)
    const post = (lines: string[]) => rawStatus(control, 'POST /tasks HTTP/1.1', [`Host: ${host}`, ...lines], graph)
    expect(await post(['Origin: http://evil.com', 'Content-Type: text/plain'])).toBe(403)
    expect(await post(['Origin: null'])).toBe(403)
    expect(await post(['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors'])).toBe(403)
    expect(await control.list()).toEqual([])
    expect(await rawStatus(control, 'POST /tasks HTTP/1.1', ['Host: evil.com'], graph)).toBe(403)
    expect(await rawStatus(control, 'GET /health HTTP/1.1', ['Host: evil.com'])).toBe(200)
    expect(await post([`Origin: http://${host}`, 'Sec-Fetch-Site: same-origin'])).toBe(202)
  })

  test('scripts and style sheets go to whoever asks: module scripts carry the Origin of the page', async () => {
    const page = await (await control.fetch('/')).text()
    const lines = ['Host: 127.0.0.1:1', 'Origin: http://taskmill.example.com', 'Sec-Fetch-Site: same-origin']
    const names = [...page.matchAll(/"(assets\/[^"]+)"/g)].map(([, name]) => name!)
    expect(names).toHaveLength(3)
    for (const name of names) expect(await rawStatus(control, `GET /${name} HTTP/1.1`, lines)).toBe(200)
    expect(await rawStatus(control, 'GET /tasks HTTP/1.1', lines)).toBe(403)
  })

  test('a request without a Host, or with an empty one, reaches the route of its path and no other', async () => {
    await control.submit([{ id: 'a', type: 'noop' }])
    const ask = (path: string, lines: string[] = []) => rawStatus(control, `GET ${path} HTTP/1.1`, ['Host:', ...lines])
    for (const path of ['/docs', '/graphs?label=a%3Db', '/graphs?limit=1', '/tasks/a', '/tasks', '/openapi.json']) {
      expect([path, await ask(path)]).toEqual([path, 200])
      expect([path, await rawStatus(control, `GET ${path} HTTP/1.0`, [])]).toEqual([path, 200])
    }
    for (const path of [
      '/tasks/aaaaaaaaaa/health',
      '/aaaaaaaaaaaaa/tasks',
      '/a/assets/aaaa/tasks',
      '//tasks/a/tasks',
    ]) {
      expect([path, await ask(path)]).toEqual([path, 404])
    }
    expect(await ask('/tasks?status=a/b')).toBe(400)
    expect(await ask('/tasks?no_such=a%2Fb')).toBe(400)
    const mcp = ['Content-Type: application/json', 'Accept: application/json, text/event-stream', 'Host:']
    const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    expect(await rawStatus(control, 'POST /mcp HTTP/1.1', mcp, list)).toBe(200)
    expect(await rawStatus(control, 'POST /mcp HTTP/1.1', mcp, '{')).toBe(400)
  })

  test('--allowed-host and SERVICE_ALLOWED_HOSTS let names through', async () => {
    await using control = await startControl({
      flags: ['--allowed-host', 'a.example.com', '--allowed-host=b.example.com'],
    })
    const host = (name: string) => rawStatus(control, 'GET /tasks HTTP/1.1', [`Host: ${name}`])
    expect([await host('a.example.com'), await host('b.example.com:80'), await host('c.example.com')]).toEqual([
      200, 200, 403,
    ])
    await using other = await startControl({ env: { SERVICE_ALLOWED_HOSTS: 'c.example.com, d.example.com' } })
    expect(await rawStatus(other, 'GET /tasks HTTP/1.1', ['Host: d.example.com'])).toBe(200)
  })

  test('listening beyond loopback logs a warning', async () => {
    await using control = await startControl({ flags: ['--addr', '0.0.0.0:0'] })
    await until(
      () => control.log.filter(({ level }) => level === 'warn').map(({ msg }) => String(msg)),
      (warnings) => warnings.some((msg) => msg.startsWith('listening beyond loopback without a token')),
    )
    await using local = await startControl()
    expect(local.log.filter(({ level }) => level === 'warn')).toEqual([])
  })
})

describe('with a token', () => {
  test('a request without a Host needs it, whatever its path looks like', async () => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'a-secret-token' } })
    const paths = ['/tasks', '/tasks/aaaaaaaaaa/health', '/aaaaaaaaaaaaa/tasks', '/a/assets/aaaa/tasks', '/a/health']
    for (const path of paths) {
      expect([path, await rawStatus(control, `GET ${path} HTTP/1.1`, ['Host:'])]).toEqual([path, 401])
    }
    for (const path of ['/health', '/', '/docs']) {
      expect([path, await rawStatus(control, `GET ${path} HTTP/1.1`, ['Host:'])]).toEqual([path, 200])
    }
  })

  const authorization = 'Bearer sesame-42'

  test('everything but health needs it (401); the client sends SERVICE_TOKEN', async () => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame-42' } })
    const refused = await control.fetch('/tasks')
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await refused.json()).toEqual({ error: 'a token is needed: send Authorization: Bearer <token>' })
    const wrong = await control.fetch('/tasks', { headers: { authorization: 'Bearer sesame-43' } })
    expect([wrong.status, await wrong.json()]).toEqual([401, { error: 'the token is wrong' }])
    expect((await control.post(graph)).status).toBe(401)
    expect((await control.fetch('/no/such/path')).status).toBe(401)
    expect((await control.fetch('/health')).status).toBe(200)
    expect((await control.fetch('/tasks', { headers: { authorization } })).status).toBe(200)
    const options = { url: control.url, stdin: graph }
    expect((await runClient(['submit'], options)).envelope.error?.status_code).toBe(401)
    expect((await runClient(['submit'], { ...options, env: { SERVICE_TOKEN: 'sesame-42' } })).exitCode).toBe(0)
  })

  test('a path that is another one for whoever parses it as a URL needs it', async () => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame-42' } })
    const ids = ['.', '..', '..\\..', '..\\health', 'x\\..\\..']
    const tasks = ids.map((id) => ({ id, type: 'noop' }))
    await control.submit(tasks, { authorization })
    const { host } = new URL(control.url)
    const hidden = ['/tasks/..\\..', '/tasks/..\\health', '/tasks/%2e%2e\\health', '/tasks/x\\..\\..']
    for (const path of ['/tasks/..', '/tasks/%2e%2E', '/tasks/.', ...hidden]) {
      expect([path, await rawStatus(control, `GET ${path} HTTP/1.1`, [`Host: ${host}`])]).toEqual([path, 401])
    }
    expect(await rawStatus(control, 'DELETE /tasks/.. HTTP/1.1', [`Host: ${host}`])).toBe(401)
    const lines = [`Host: ${host}`, `Authorization: ${authorization}`]
    expect(await rawStatus(control, 'GET /tasks/.. HTTP/1.1', lines)).toBe(200)
  })

  test('it may be in a file, which beats the variable, and never appears in the log', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'token')
    writeFileSync(file, 'sesame-42\n')
    await using control = await startControl({
      flags: ['--token-file', file, '--log-level', 'debug'],
      env: { SERVICE_TOKEN: 'other' },
    })
    expect((await control.fetch('/tasks', { headers: { authorization } })).status).toBe(200)
    expect((await control.fetch('/tasks', { headers: { authorization: 'Bearer other' } })).status).toBe(401)
    expect(JSON.stringify(control.log)).not.toContain('sesame')
  })

  test.each([
    [
      'no such file',
      '/no/such/token',
      'cannot read the token file /no/such/token: ENOENT (give another with --token-file)',
    ],
    ['an empty file', '/dev/null', 'the token in /dev/null must be 1 to 4096 visible ASCII characters without spaces'],
  ])('%s stops the start', async (_, file, message) => {
    await expect(startControl({ flags: ['--token-file', file] })).rejects.toThrow(message)
  })

  test('in a file that others can read is warned of; the one in the data directory is closed', async () => {
    using dir = tempDir()
    const [file, own] = [join(dir.path, 'token'), join(dir.path, 'runtime-token')]
    for (const path of [file, own]) writeFileSync(path, 'secret\n')
    for (const path of [file, own]) chmodSync(path, 0o644)
    await using control = await startControl({ dataDir: dir.path, flags: ['--token-file', file] })
    expect(control.log).toContainEqual(expect.objectContaining({ level: 'warn', token_file: file }))
    expect(statSync(own).mode & 0o777).toBe(0o600)
  })

  test('tasks do not see it', async () => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame-42', SERVICE_SHELL_POLICY: 'open' } })
    const headers = { authorization }
    await control.submit([{ id: 'env', type: 'shell', params: { command: 'env' } }], headers)
    const record = await until(
      async () =>
        (await control.fetch('/tasks/env', { headers })).json() as Promise<{ status: string; result?: unknown }>,
      ({ status }) => status === 'success',
    )
    expect(JSON.stringify(record)).not.toContain('sesame')
  })
})
