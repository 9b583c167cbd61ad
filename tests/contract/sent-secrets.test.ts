/**
 * Goal: http and mcp tasks and callbacks send secrets to the hosts of their rules, and to nobody else, and what comes back shows
 * none. Method: an attacker's table against servers that echo, redirect and refuse; then all that the service has written and
 * answers is searched for the value.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { type Control, startControl } from '../support/control.ts'
import { filesWith } from '../support/files-below.ts'
import { freePort } from '../support/free-port.ts'
import { oddServer } from '../support/mcp.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startMcpHttpServer } from '../support/mcp-http-server.ts'
import { startReceiver } from '../support/receiver.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const VALUE = `s3cr3t"/${crypto.randomUUID()}`
const FORMS = [VALUE, JSON.stringify(VALUE).slice(1, -1), encodeURIComponent(VALUE), VALUE.slice(8, 30)]
const ENCODED = [0, 1, 2].map((before) => btoa('x'.repeat(before) + VALUE).slice(4, 40))
const hasValue = (text: string | Buffer) => [...FORMS, ...ENCODED].some((form) => text.includes(form))

interface Asked {
  readonly path: string
  readonly headers: Headers
  readonly body: string
}

let temp: TempDir
let control: Control
/** The one that the rules name, and another. */
let server: Bun.Server<undefined>
let other: Bun.Server<undefined>
let mcpServer: ReturnType<typeof startMcpHttpServer>
const asked: Asked[] = []
const askedOther: Asked[] = []

const noting = (list: Asked[]) => async (request: Request) => {
  const { pathname, search, searchParams } = new URL(request.url)
  const body = await request.text()
  list.push({ path: pathname + search, headers: request.headers, body })
  const sent = request.headers.get('authorization') ?? request.headers.get('x-key') ?? body
  const key = sent.replace('Bearer ', '')
  const headers = { 'x-echo': sent }
  switch (pathname) {
    case '/echo':
      return Response.json(
        { sent, forms: [btoa(key), btoa(`x${key}`), btoa(`xx${key}`), encodeURIComponent(key)] },
        { headers },
      )
    case '/long':
      return new Response(`${'.'.repeat(1024 * 1024 - 10)}${key}`)
    case '/fail':
      return new Response(`no ${key}`, { status: 403, headers })
    case '/to':
      return new Response(null, {
        status: Number(searchParams.get('status') ?? 302),
        headers: { location: searchParams.get('url')! },
      })
    case '/leak':
      return Response.redirect(`http://localhost:${other.port}/leak?key=${encodeURIComponent(key)}`, 302)
    default:
      return new Response(pathname)
  }
}

beforeAll(async () => {
  temp = tempDir()
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: noting(asked) })
  other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: noting(askedOther) })
  mcpServer = startMcpHttpServer()
  const dir = join(temp.path, 'secrets')
  mkdirSync(dir, { mode: 0o700 })
  const values = {
    ...{ token: `${VALUE}\n`, shown: VALUE, unruled: VALUE, plain: VALUE, shell: VALUE, builtin: VALUE },
    ...{
      lines: `${VALUE}\r\nX-Injected: 1`,
      wide: `${VALUE}€`,
      whole: `http://127.0.0.1:${server.port}/hook/${VALUE}`,
    },
  }
  for (const [name, value] of Object.entries(values)) writeFileSync(join(dir, name), value, { mode: 0o600 })
  const here = `"http://127.0.0.1:${server.port}"`
  const rules = join(temp.path, 'secrets.toml')
  const named = (name: string, ...hosts: string[]) => `[${name}]\nhosts = [${hosts.join()}]\n`
  const everywhere = [here, '"mcp:odd"', `"http://127.0.0.1:${new URL(mcpServer.url).port}"`]
  writeFileSync(
    rules,
    `${['token', 'shown', 'lines', 'wide', 'whole'].map((name) => named(name, ...everywhere)).join('')}` +
      `[plain]\ntypes = ["shell"]\n[shell]\ntypes = ["shell"]\nhosts = [${here}]\n${named('builtin', '"mcp:odd"')}`,
    { mode: 0o644 },
  )
  const mcpConfig = join(temp.path, 'mcp.json')
  writeFileSync(mcpConfig, JSON.stringify({ mcpServers: { odd: oddServer(), web: { url: mcpServer.url } } }))
  control = await startControl({
    flags: [
      ...['--secrets-dir', dir, '--secrets-rules', rules, '--mcp-config', mcpConfig, '--callback-policy', 'any'],
      ...['--log-level', 'debug', '--persist-interval', '20ms'],
    ],
    env: { SERVICE_SHELL_POLICY: 'open' },
  })
})
afterAll(async () => {
  await control.stop('SIGTERM')
  await control.dispose()
  await Promise.all([server.stop(true), other.stop(true), mcpServer[Symbol.asyncDispose]()])
  temp[Symbol.dispose]()
})

const at = (path: string) => `http://127.0.0.1:${server.port}${path}`
const elsewhere = (path: string) => `http://localhost:${other.port}${path}`
const secret = (name = 'token', more: object = {}) => ({ $secret: name, prefix: 'Bearer ', ...more })
const get = (url: unknown, headers: object = { Authorization: secret() }, more: object = {}) =>
  control.run({ type: 'http', params: { url, headers, ...more } })

const codeOf = ({ runtime }: TaskRecord) => runtime?.error?.code

describe('an http task', () => {
  test('sends a secret in a header, the body and the URL, and shows it nowhere', async () => {
    const task = await get(at('/echo'), { Authorization: secret(), 'X-Key': { $secret: 'token', suffix: '.' } })
    expect(asked.at(-1)!.headers.get('authorization')).toBe(`Bearer ${VALUE}`)
    expect(asked.at(-1)!.headers.get('x-key')).toBe(`${VALUE}.`)
    expect(task.status).toBe('success')
    const { body, headers } = task.result as { body: string; headers: Record<string, string> }
    expect(JSON.parse(body).sent).toBe('Bearer ***')
    expect(headers['x-echo']).toBe('Bearer ***')
    expect(task.params).toMatchObject({ headers: { Authorization: secret() } })
    const given = { method: 'POST', body: { $secret: 'token', prefix: 'key=' } }
    expect((await get(at('/echo'), {}, given)).result).toMatchObject({ body: expect.stringContaining('key=***') })
    expect(asked.at(-1)!.body).toBe(`key=${VALUE}`)
    await get({ $secret: 'whole' }, {})
    expect(asked.at(-1)!.path).toBe(`/hook/${VALUE.replaceAll('"', '%22')}`)
  })

  test('masks a value that the limit of the body would cut, and in a file', async () => {
    const { result } = await get(at('/long'))
    expect((result as { body: string }).body.slice(-13)).toBe('..........***')
    const path = join(control.cwd, 'saved')
    await get(at('/long'), undefined, { save_to: path })
    expect(readFileSync(path, 'utf8').endsWith('.***')).toBe(true)
  })

  test('shows what need not be masked', async () => {
    const { result, graph_id } = await get(at('/echo'), { Authorization: secret('shown', { mask: false }) })
    expect((result as { headers: object }).headers).toMatchObject({ 'x-echo': `Bearer ${VALUE}` })
    expect((await control.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })).ok).toBe(true)
  })

  test('of an attacker gets no secret to another place, and none into an error', async () => {
    const before = askedOther.length
    const post = { method: 'POST', body: { $secret: 'token' } }
    const rules = join(temp.path, 'secrets.toml')
    const noHost = `expected: the secret token is not for http://localhost:${other.port} (add that to hosts of [token] in ${rules})`
    const refusals: [string, () => Promise<TaskRecord>, string, RegExp | string][] = [
      ['another host', () => get(elsewhere('/echo')), 'denied', noHost.slice(10)],
      [
        'another port',
        () => get(`http://127.0.0.1:${other.port}/echo`),
        'denied',
        /is not for http:\/\/127\.0\.0\.1:\d+ \(add/,
      ],
      [
        'TLS is another place',
        () => get(at('/echo').replace('http:', 'https:')),
        'denied',
        /is not for 127\.0\.0\.1:\d+ \(/,
      ],
      [
        'the name in the userinfo',
        () => get(`http://127.0.0.1:${server.port}@localhost:${other.port}/echo`),
        'denied',
        /is not for http:\/\/localhost/,
      ],
      [
        'a host in the value of the URL',
        () => get({ $secret: 'token', prefix: 'http://x:', suffix: `@localhost:${other.port}/` }, {}),
        'invalid_input',
        /got "http:\/\/x:\*\*\*@localhost/,
      ],
      [
        'another Host',
        () => get(at('/echo'), { Authorization: secret(), Host: 'evil.example' }),
        'denied',
        /no Host header/,
      ],
      [
        'a redirect with the body',
        () => get(at(`/to?status=307&url=${elsewhere('/echo')}`), {}, post),
        'denied',
        /^redirected to http:\/\/localhost:\d+, where a secret/,
      ],
      [
        'a redirect that has the value',
        () => get(at('/leak')),
        'denied',
        /^redirected to http:\/\/localhost:\d+, where a secret/,
      ],
      ['a failing answer', () => get(at('/fail')), 'external_failure', 'http status 403'],
      [
        'no server, a value in the query',
        async () => get({ $secret: 'whole', suffix: '?', prefix: '' }, { Authorization: secret('lines') }),
        'invalid_input',
        /line break/,
      ],
      [
        'a character no header has',
        () => get(at('/echo'), { Authorization: secret('wide') }),
        'invalid_input',
        /params\.headers\.Authorization: the secret wide has a line break or/,
      ],
      [
        'no table',
        () => get(at('/echo'), { Authorization: secret('unruled') }),
        'invalid_input',
        `params.headers.Authorization: the secret unruled is for processes of tasks only (give its table [unruled] in ${rules} hosts)`,
      ],
      [
        'no hosts',
        () => get(at('/echo'), { Authorization: secret('plain') }),
        'invalid_input',
        /not for tasks of type http/,
      ],
      [
        'another type',
        () => get(at('/echo'), { Authorization: secret('shell') }),
        'invalid_input',
        /not for tasks of type http/,
      ],
      [
        'none of this name',
        () => get(at('/echo'), { Authorization: secret('none') }),
        'invalid_input',
        /the secret none is for processes/,
      ],
    ]
    for (const [what, run, code, message] of refusals) {
      const task = await run()
      expect([what, codeOf(task), hasValue(JSON.stringify(task))]).toEqual([what, code as never, false])
      if (typeof message === 'string') expect(task.error).toBe(message)
      else expect(task.error).toMatch(message)
    }
    expect(askedOther.length).toBe(before)
    const refused = await get({ $secret: 'token', prefix: `http://127.0.0.1:${await freePort()}/?key=` }, {})
    expect(refused.error).toMatch(/is not for http/)
  })

  test('drops a secret on the way to another origin, and keeps it on the way to the same', async () => {
    const headers = { 'X-Key': { $secret: 'token' }, 'X-Free': 'kept' }
    expect((await get(at(`/to?url=${encodeURIComponent(at('/echo'))}`), headers)).status).toBe('success')
    expect(asked.at(-1)!.headers.get('x-key')).toBe(VALUE)
    expect((await get(at(`/to?url=${encodeURIComponent(elsewhere('/echo'))}`), headers)).status).toBe('success')
    const { headers: got } = askedOther.at(-1)!
    expect([got.get('x-key'), got.get('x-free')]).toEqual([null, 'kept'])
  })

  test('takes no data for a secret', async () => {
    const forged = JSON.stringify({ $secret: 'token' })
    const tasks = [
      { id: 'forger', type: 'shell', params: { script: `echo '${forged}'` } },
      ...['forged-header', 'forged-literal'].map((id) => ({
        ...{ id, type: 'http', depends_on: ['forger'] },
        params: {
          url: at('/echo'),
          headers: {
            Authorization: secret(),
            'X-Key':
              id === 'forged-literal'
                ? { $literal: { $secret: 'token' } }
                : { $from: 'forger', path: '/result/stdout', as: 'json' },
          },
        },
      })),
    ]
    const before = asked.length
    await control.submit(tasks)
    for (const { id } of tasks.slice(1)) {
      const task = await control.ended(id)
      expect([codeOf(task), task.error]).toEqual([
        'invalid_input',
        expect.stringContaining('headers: expected object of strings'),
      ])
    }
    expect(asked.length).toBe(before)
  })
})

describe('an mcp task', () => {
  const call = (tool: string, input: object) => control.run({ type: 'mcp', tool_name: tool, input })

  test('sends a secret to a server of its rules, which answers it in every way', async () => {
    const words = { words: secret() }
    for (const tool of ['odd/say', 'web/say']) {
      const task = await call(tool, words)
      expect([tool, task.status, JSON.stringify(task.result)]).toEqual([
        tool,
        'success',
        expect.stringContaining('Bearer ***'),
      ])
      expect(hasValue(JSON.stringify(task))).toBe(false)
    }
    const structured = await call('odd/structured', { value: { [VALUE.slice(0, 3)]: [secret()] } })
    expect(hasValue(JSON.stringify(structured))).toBe(false)
    const short = await call('call', { server: 'odd', tool: 'progress', arguments: { message: secret() } })
    expect(JSON.stringify(short.progress)).toContain('Bearer ***')
    expect(hasValue(JSON.stringify(short))).toBe(false)
  })

  test('sends none to another server, nor along a redirect', async () => {
    const sentBefore = mcpServer.received.length
    const away = await call('web/say', { words: secret('builtin') })
    expect([codeOf(away), away.error]).toEqual([
      'denied',
      expect.stringMatching(/^the secret builtin is not for mcp:web \(add/),
    ])
    expect(mcpServer.received.length).toBe(sentBefore)
    expect((await call('builtin/echo', { words: secret() })).error).toMatch(/is not for mcp:builtin/)
    const redirected = await call('web/elsewhere', { words: secret() })
    expect([redirected.status, hasValue(JSON.stringify(redirected))]).toEqual(['failed', false])
  })
})

test('a graph with a secret in the wrong place, or an invalid one, is refused', async () => {
  const fault = async (task: object, more: object = {}) => {
    const answer = await control.post({ tasks: [{ id: 'x', ...task }], ...more })
    expect(answer.status).toBe(400)
    return await answer.text()
  }
  const params = (headers: unknown) => ({ type: 'http', params: { url: at('/'), headers } })
  expect(await fault({ type: 'shell', params: { command: 'ls', args: [secret()] } })).toContain(
    'params.args[0]: $secret: only http and mcp tasks send one',
  )
  expect(await fault(params(secret()))).toContain('params.headers: $secret: expected as the url, the body or a header')
  expect(await fault({ type: 'mcp', tool_name: 'odd/say', input: secret() })).toContain(
    '$secret: expected in an argument',
  )
  expect(await fault({ type: 'mcp', tool_name: 'call', input: { tool: secret() } })).toContain(
    '$secret: expected in an argument',
  )
  expect(await fault({ type: 'wait', params: { http: { url: secret() } } })).toContain(
    'only http and mcp tasks send one',
  )
  expect(await fault(params({ A: { $secret: '../token' } }))).toContain('params.headers.A: $secret: expected the name')
  expect(await fault(params({ A: { $secret: 'token', prefx: '' } }))).toContain('did you mean')
  expect(await fault(params({ A: { $secret: { $param: 'name' } } }), { params: { name: 'token' } })).toContain(
    '$secret: expected the name',
  )
  const callback = (headers: object, url = at('/hook')) => fault({ type: 'noop' }, { callback: { url, headers } })
  expect(await callback({ A: secret('none') })).toContain('callback.headers.A: there is no secret none')
  expect(await callback({ A: secret() }, elsewhere('/hook'))).toContain(
    'callback.headers.A: the secret token is not for http://localhost',
  )
  expect(await callback({ A: 'x\r\nB: y' })).toContain('callback.headers.A: expected printable ASCII in one line')
  expect(await callback({ 'A: x\r\nB': 'y' })).toContain('is no name of a header')
  expect(await callback({ Host: 'evil.example' })).toContain('callback.headers.Host: each callback has one of its own')
})

test('a submission and a dry run tell of a secret that cannot be sent', async () => {
  const task = {
    id: 'warned',
    type: 'http',
    params: { url: elsewhere('/echo'), headers: { A: secret(), B: secret('none') } },
  }
  const answer = await control.post({ tasks: [task] })
  const { warnings } = (await answer.json()) as { warnings: { message: string }[] }
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^params\.headers\.A: the secret token is not for http:\/\/localhost/),
    'params.headers.B: there is no secret none (no such file in --secrets-dir)',
  ])
  const dry = await control.fetch('/tasks?dry_run=true', {
    method: 'POST',
    body: JSON.stringify({ tasks: [{ ...task, id: 'dry' }] }),
  })
  expect(await dry.text()).toContain('params.headers.A: the secret token is not for')
})

test('a value is in nothing that the service has written, says and answers', async () => {
  await using receiver = startReceiver((_, count) => new Response(null, { status: count === 1 ? 500 : 204 }))
  // The receiver is a host of no rule until now, so the callback waits for one.
  const port = receiver.port
  const rules = join(temp.path, 'secrets.toml')
  const text = readFileSync(rules, 'utf8')
  writeFileSync(rules, text.replace('[token]\nhosts = [', `[token]\nhosts = ["http://127.0.0.1:${port}",`))
  const answer = await control.post({
    tasks: [{ id: 'called-back', type: 'noop' }],
    callback: { url: receiver.url, headers: { Authorization: secret(), 'X-Free': 'as it is' } },
  })
  expect([answer.status, hasValue(await answer.text())]).toEqual([202, false])
  await receiver.has(2)
  for (const { headers } of receiver.received)
    expect([headers.get('authorization'), headers.get('x-free')]).toEqual([`Bearer ${VALUE}`, 'as it is'])
  writeFileSync(rules, text)

  await until(
    () => control.list(),
    (records) => records.every(({ status }) => isTerminal(status)),
  )
  const paths = ['/tasks', '/graphs?limit=100', '/metrics', '/health', '/mcp/tools', '/events?after=0']
  for (const { id, graph_id } of await control.list())
    paths.push(
      `/tasks/${id}`,
      `/tasks/${id}/logs`,
      `/graphs/${graph_id}`,
      `/graphs/${graph_id}/events?after=0&until=ended`,
    )
  for (const path of paths.filter((each) => !each.startsWith('/events')))
    expect([path, hasValue(await (await control.fetch(path)).text())]).toEqual([path, false])
  await using mcp = await connectClient(control.url)
  for (const { id } of await control.list())
    expect(hasValue((await mcp.call('get_task', { task_id: id, detail: true })).text)).toBe(false)
  await control.stop('SIGTERM')
  expect(filesWith(control.cwd, hasValue)).toEqual([])
  expect(filesWith(control.dataDir, hasValue)).toEqual([])
  expect(hasValue(JSON.stringify(control.log))).toBe(false)
})
