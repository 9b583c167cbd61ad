/** The executor http, against servers of the test. Source: spec, Task executors; contract, Executors and section 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

let temp: TempDir
let root: string
let control: Control
let server: Bun.Server<undefined>
/** Another origin; says what headers it got. */
let other: Bun.Server<undefined>
let aborted = 0
beforeAll(async () => {
  temp = tempDir()
  root = join(temp.path, 'work')
  mkdirSync(root)
  control = await startControl({ cwd: root })
  other = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => Response.json(Object.fromEntries(request.headers)),
  })
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: answer })
})
afterAll(async () => {
  await control.dispose()
  await server.stop(true)
  await other.stop(true)
  temp[Symbol.dispose]()
})

async function answer(request: Request): Promise<Response> {
  const { pathname, searchParams, origin } = new URL(request.url)
  const [, what, argument] = pathname.split('/')
  switch (what) {
    case 'echo': {
      const { method, headers } = request
      return Response.json({ method, headers: Object.fromEntries(headers), body: await request.text() })
    }
    case 'status':
      return new Response(`status ${argument}`, { status: Number(argument), headers: { 'x-mark': 'kept' } })
    case 'bytes':
      return new Response('x'.repeat(Number(argument)))
    case 'euros':
      return new Response('x' + '€'.repeat(MIB / 2))
    case 'redirect': {
      const left = Number(argument)
      return left === 0 ? new Response('arrived') : Response.redirect(`${origin}/redirect/${left - 1}`, 302)
    }
    case 'to':
      return new Response(null, { status: 302, headers: { location: searchParams.get('url')! } })
    case 'never':
      return await new Promise<Response>(() => request.signal.addEventListener('abort', () => aborted++))
    case 'stuck':
      return new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(Buffer.from('the beginning')),
          cancel: () => void aborted++,
        }),
      )
    default:
      return new Response('hello', { headers: { 'content-type': 'text/plain', 'x-mark': 'yes' } })
  }
}

type Echo = { method: string; headers: Record<string, string>; body: string }
const url = (path: string) => `http://127.0.0.1:${server.port}${path}`
const run = (params: object, more: object = {}, service = control) => service.run({ type: 'http', params, ...more })
const bodyOf = (task: TaskRecord) => (task.result as { body: string }).body
const echoOf = (task: TaskRecord) => JSON.parse(bodyOf(task)) as Echo

describe('request', () => {
  test('is a GET by default; the result has status_code, body, headers and truncated', async () => {
    expect(await run({ url: url('/') })).toMatchObject({
      status: 'success',
      result: {
        status_code: 200,
        body: 'hello',
        headers: { 'x-mark': 'yes', 'content-type': 'text/plain' },
        truncated: false,
      },
    })
    expect(echoOf(await run({ url: url('/echo') })).method).toBe('GET')
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s with headers and body', async (method) => {
    const headers = { 'X-Custom': 'one, two', 'content-type': 'text/x-test' }
    const echo = echoOf(await run({ url: url('/echo'), method, headers, body: 'grün €' }))
    expect(echo).toMatchObject({ method, body: 'grün €' })
    expect(echo.headers).toMatchObject({ 'x-custom': 'one, two', 'content-type': 'text/x-test' })
  })

  test('null in an optional parameter means absent', async () => {
    const echo = echoOf(await run({ url: url('/echo'), method: null, headers: null, body: null }))
    expect(echo).toMatchObject({ method: 'GET', body: '' })
  })

  test('HEAD has an empty body', async () => {
    expect(await run({ url: url('/'), method: 'HEAD' })).toMatchObject({
      status: 'success',
      result: { status_code: 200, body: '' },
    })
  })

  test('nothing of the service is sent along: no cookie, no authorization, no trace id', async () => {
    const task = { id: 'plain', type: 'http', params: { url: url('/echo') } }
    await control.submit([task], { 'x-trace-id': 'private-trace', cookie: 'a=b', authorization: 'Bearer sesame' })
    const { headers } = echoOf(await control.ended('plain'))
    expect(Object.keys(headers)).not.toContain('cookie')
    expect(Object.keys(headers)).not.toContain('authorization')
    expect(JSON.stringify(headers)).not.toContain('private-trace')
  })
})

describe('a status', () => {
  test.each([400, 404, 429, 500, 503, 599])('of %d fails the task, which keeps its result', async (status) => {
    expect(await run({ url: url(`/status/${status}`) })).toMatchObject({
      status: 'failed',
      error: `http status ${status}`,
      runtime: { error: { code: 'external_failure', message: `http status ${status}` } },
      result: { status_code: status, body: `status ${status}`, headers: { 'x-mark': 'kept' } },
    })
  })

  test.each([201, 202, 300, 304, 399])('below 400 does not: %d', async (status) => {
    expect(await run({ url: url(`/status/${status}`) })).toMatchObject({
      status: 'success',
      result: { status_code: status },
    })
  })

  test('that gets better is worth a retry', async () => {
    let asked = 0
    await using shaky = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response('', { status: ++asked < 3 ? 503 : 200 }),
    })
    expect(await run({ url: shaky.url.href }, { retry: 2 })).toMatchObject({ status: 'success', attempt: 3 })
    expect(asked).toBe(3)
  })
})

describe('the response body', () => {
  test('of 1,048,576 bytes is whole', async () => {
    const task = await run({ url: url(`/bytes/${MIB}`) })
    expect(bodyOf(task)).toHaveLength(MIB)
    expect(task.result).toMatchObject({ truncated: false })
  })

  test.each([MIB + 1, 20 * MIB])('of %d bytes is cut to 1,048,576, which truncated says', async (bytes) => {
    const task = await run({ url: url(`/bytes/${bytes}`) })
    expect(task).toMatchObject({ status: 'success', result: { truncated: true } })
    expect(bodyOf(task)).toHaveLength(MIB)
  })

  test('is cut between characters', async () => {
    const task = await run({ url: url('/euros') })
    expect(task.result).toMatchObject({ truncated: true })
    expect(bodyOf(task) === 'x' + '€'.repeat((MIB - 1) / 3)).toBe(true)
  })
})

describe('redirects', () => {
  test('ten are followed', async () => {
    expect((await run({ url: url('/redirect/10') })).result).toMatchObject({ status_code: 200, body: 'arrived' })
  })

  test('the eleventh fails', async () => {
    const task = await run({ url: url('/redirect/11') })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'external_failure' } } })
    expect(task.error).toContain('redirect')
  })

  test('may be relative', async () => {
    expect((await run({ url: url('/to?url=../redirect/0') })).result).toMatchObject({ body: 'arrived' })
  })

  test.each(['file:///etc/passwd', 'ftp://127.0.0.1/x', 'data:text/plain,hello'])(
    'may not leave http: and https:, as to %s',
    async (location) => {
      const task = await run({ url: url(`/to?url=${encodeURIComponent(location)}`) })
      const error = `redirected to "${location}", which is no http: or https: address`
      expect(task).toMatchObject({ status: 'failed', error, runtime: { error: { code: 'external_failure' } } })
      expect(JSON.stringify(task.result ?? '')).not.toMatch(/root:|hello/)
    },
  )

  const credentials = { Authorization: 'Bearer sesame', Cookie: 'id=sesame', 'Proxy-Authorization': 'sesame' }

  test('keep credentials within an origin', async () => {
    const task = await run({ url: url('/to?url=/echo'), headers: { ...credentials, 'x-plain': 'kept' } })
    expect(echoOf(task).headers).toMatchObject({
      authorization: 'Bearer sesame',
      cookie: 'id=sesame',
      'x-plain': 'kept',
    })
  })

  test('forward no credentials to another origin', async () => {
    const to = `http://127.0.0.1:${other.port}/`
    const headers = { ...credentials, 'x-plain': 'kept' }
    const body = bodyOf(await run({ url: url(`/to?url=${encodeURIComponent(to)}`), headers }))
    expect(JSON.parse(body)).toMatchObject({ 'x-plain': 'kept' })
    expect(body).not.toContain('sesame')
  })

  test('keep a Host header within an origin, and send another origin its own', async () => {
    const headers = { host: 'virtual.example' }
    expect(echoOf(await run({ url: url('/to?url=/echo'), headers })).headers.host).toBe('virtual.example')
    const to = `http://127.0.0.1:${other.port}/`
    const body = bodyOf(await run({ url: url(`/to?url=${encodeURIComponent(to)}`), headers }))
    expect(JSON.parse(body).host).toBe(`127.0.0.1:${other.port}`)
  })

  test('back to the first origin bring no credentials back', async () => {
    const back = `http://127.0.0.1:${server.port}/echo`
    await using detour = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.redirect(back) })
    const task = await run({ url: url(`/to?url=${encodeURIComponent(detour.url.href)}`), headers: credentials })
    expect(JSON.stringify(echoOf(task).headers)).not.toContain('sesame')
  })
})

describe('parameters', () => {
  test.each([[undefined], [{}], [{ url: '' }], [{ url: null }], [{ method: 'GET' }]])(
    'url is required: %j',
    async (params) => {
      expect(await control.run({ type: 'http', params })).toMatchObject({
        status: 'failed',
        error: 'url is required',
        runtime: { error: { code: 'invalid_input' } },
      })
    },
  )

  test.each([
    'ftp://127.0.0.1/x',
    'file:///etc/passwd',
    'data:text/plain,hello',
    'javascript:1',
    'ws://127.0.0.1/',
    'unix:/run/x',
    '/path/only',
    'no url',
    'http://',
  ])('only http: and https: are allowed, not %s', async (given) => {
    const task = await run({ url: given })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'invalid_input' } } })
    expect(task).not.toHaveProperty('result')
  })

  test.each(['GET', 'HEAD', null])('%s with a body is refused, not sent without it', async (method) => {
    const task = await run({ url: url('/echo'), method, body: 'x' })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'invalid_input' } } })
    expect(task.error).toContain('body')
  })

  test.each(['BREW', 'G E T', 'TRACE', 'CONNECT'])('a method that cannot be sent is refused: %s', async (method) => {
    const task = await run({ url: url('/echo'), method })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'invalid_input' } } })
    expect(task.error).toContain(method)
  })
})

describe('failures of the network', () => {
  test('a refused connection', async () => {
    const task = await run({ url: `http://127.0.0.1:${await freePort()}/` })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'external_failure' } } })
    expect(task.error).toContain('refused')
  })

  test('a server that hangs up', async () => {
    using rude = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.terminate() } })
    const task = await run({ url: `http://127.0.0.1:${rude.port}/` })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'external_failure' } } })
    rude.stop(true)
  })

  test('a password in the address does not get into the error', async () => {
    const task = await run({ url: `http://user:sesame@127.0.0.1:${await freePort()}/` })
    expect(task.status).toBe('failed')
    expect(task.error).not.toContain('sesame')
  })

  test.each(['/never', '/stuck'])('timeout aborts the request: %s', async (path) => {
    const before = aborted
    const task = await run({ url: url(path) }, { timeout: 1_000 }) // in which the request arrives
    expect(task).toMatchObject({
      status: 'failed',
      error: 'task timed out after 1000ms',
      runtime: { error: { code: 'timeout' } },
    })
    await until(() => aborted, before + 1)
  })
})

describe('save_to', () => {
  test('writes the body to a file, with its directories, and whole', async () => {
    const bytes = 3 * MIB
    const task = await run({ url: url(`/bytes/${bytes}`), save_to: 'downloads/today/file' })
    expect(task).toMatchObject({
      status: 'success',
      result: { status_code: 200, body: '', truncated: false, saved_to: 'downloads/today/file', bytes_written: bytes },
    })
    expect(readFileSync(join(root, 'downloads/today/file')).equals(Buffer.alloc(bytes, 'x'))).toBe(true)
  })

  test('replaces what was there', async () => {
    for (const bytes of [100, 10]) await run({ url: url(`/bytes/${bytes}`), save_to: 'replaced' })
    expect(readFileSync(join(root, 'replaced'), 'utf8')).toBe('x'.repeat(10))
  })

  test('writes nothing where the status fails the task', async () => {
    const task = await run({ url: url('/status/404'), save_to: 'unwanted' })
    expect(task).toMatchObject({ status: 'failed', result: { status_code: 404, body: 'status 404' } })
    expect(existsSync(join(root, 'unwanted'))).toBe(false)
  })

  test('is bound by the file root as file tasks are', async () => {
    const escapes = { status: 'failed', error: 'path escapes the file root', runtime: { error: { code: 'denied' } } }
    expect(await run({ url: url('/'), save_to: '../escaped' })).toMatchObject(escapes)

    await using rooted = await startControl({ flags: ['--file-root', root] })
    symlinkSync(temp.path, join(root, 'way-out'))
    for (const save_to of ['../escaped', join(temp.path, 'escaped'), 'way-out/escaped']) {
      expect(await run({ url: url('/'), save_to }, {}, rooted)).toMatchObject(escapes)
    }
    expect((await run({ url: url('/'), save_to: 'inside' }, {}, rooted)).status).toBe('success')
    expect(readFileSync(join(root, 'inside'), 'utf8')).toBe('hello')
    expect(existsSync(join(temp.path, 'escaped'))).toBe(false)
  })
})

describe('proxies', () => {
  test('of the service are not for this machine', async () => {
    const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY']
    const env = Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${other.port}`]))
    await using proxied = await startControl({ env })
    for (const host of ['127.0.0.1', 'localhost']) {
      const task = await run({ url: `http://${host}:${server.port}/status/200` }, {}, proxied)
      expect(task).toMatchObject({ status: 'success', result: { body: 'status 200' } })
    }
  })
})
