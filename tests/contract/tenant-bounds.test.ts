/**
 * Where tasks of tenants connect to, which secrets and files they get, and for whom a runtime service runs them, against the
 * built services. Source: docs/security.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { freePort } from '../support/free-port.ts'
import { startMcpHttpServer } from '../support/mcp-http-server.ts'
import { Pair } from '../support/pair.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const rights = ['read', 'submit'] as const
const ALL = {
  acme: { rights, tenant: 'acme' },
  globex: { rights, tenant: 'globex' },
  trusted: { rights: [...rights, 'host'], tenant: 'acme' },
  ops: { rights },
} as const
type Name = keyof typeof ALL

const OF_OTHERS = /belongs to another tenant|there is no task/
const DENIED = { error: { code: 'denied' } }

const rulesFor = (port: number) => `[of-acme]
tenants = ["acme"]
hosts = ["http://127.0.0.1:${port}"]
[of-all]
hosts = ["http://127.0.0.1:${port}"]
`

let tokens: Tokens
let pair: Pair
let web: ReturnType<typeof startMcpHttpServer>
let inner: Bun.Server<undefined>
const asked: Request[] = []

beforeAll(async () => {
  tokens = tokensFile(ALL)
  web = startMcpHttpServer()
  inner = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch(request) {
      asked.push(request)
      const { pathname, port } = new URL(request.url)
      return pathname === '/away'
        ? Response.redirect(`http://127.0.0.2:${port}/`)
        : new Response(request.headers.get('x-secret') ?? 'inner')
    },
  })
  const place = `${tokens.path}.more`
  const secrets = join(place, 'secrets')
  mkdirSync(secrets, { recursive: true, mode: 0o700 })
  for (const name of ['of-acme', 'of-all']) writeFileSync(join(secrets, name), `value ${name}`, { mode: 0o600 })
  writeFileSync(join(place, 'rules.toml'), rulesFor(inner.port!), { mode: 0o644 })
  writeFileSync(join(place, 'mcp.json'), JSON.stringify({ mcpServers: { web: { type: 'http', url: web.url } } }))
  const secretsFlags = ['--secrets-dir', secrets, '--secrets-rules', join(place, 'rules.toml')]
  pair = new Pair(await freePort(), {
    controlEnv: { SERVICE_TOKEN: 'sesame', SERVICE_SHELL_POLICY: 'open' },
    controlFlags: [
      ...['--tokens-file', tokens.path, '--mcp-config', join(place, 'mcp.json'), '--callback-policy', 'any'],
      ...secretsFlags,
    ],
    runtimeFlags: secretsFlags,
  })
  await pair.startRuntime()
  await pair.startControl()
})
afterAll(async () => {
  await pair[Symbol.asyncDispose]()
  await inner.stop(true)
  await web[Symbol.asyncDispose]()
  tokens[Symbol.dispose]()
})

async function post(name: Name, body: unknown, query = '') {
  const answer = await pair.control.fetch(`/tasks${query}`, {
    ...{ method: 'POST', headers: tokens.as(name), body: JSON.stringify(body) },
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they expect it
  return { status: answer.status, body: (await answer.json()) as any }
}

/** The end of one task, with its id in the runtime service. */
async function run(name: Name, task: object): Promise<TaskRecord> {
  const { status, body } = await post(name, { scope: 'graph', tasks: [{ id: 'a', ...task }] })
  expect([status, body.error]).toEqual([202, undefined])
  const path = `/graphs/${body.graph_id}/tasks/a`
  const look = async () => (await pair.control.fetch(path, { headers: tokens.as(name) })).json()
  return until(look as () => Promise<TaskRecord>, ({ finished_at }) => finished_at !== undefined)
}

const strict = (script: string, network: object | undefined = undefined, more: object = {}) => ({
  type: 'runtime.script',
  params: {
    script,
    sandbox: { profile: 'linux_sandbox', ...(network && { network }) },
    policy: { capability_mode: 'strict' },
    ...more,
  },
})

const url = (path = '') => `http://127.0.0.1:${inner.port}/${path}`
const http = (path?: string) => ({ type: 'http', params: { url: url(path) } })

/** What acme reaches, once the service has seen it. */
async function listed(reach: readonly string[]) {
  tokens.put(ALL, reach.length === 0 ? [] : [{ name: 'acme', reach }])
  const outcome = reach.includes('127.0.0.1') ? 'success' : 'failed'
  await until(
    () => run('acme', http()),
    ({ status }) => status === outcome,
  )
}

describe('without a list, a tenant reaches public addresses only', () => {
  const refused = 'is no public address (the operator lists others in reach of tenant acme, in the tokens file)'

  test('by http tasks, of which a dry run tells', async () => {
    const before = asked.length
    expect(await run('acme', http())).toMatchObject({ status: 'failed', runtime: DENIED })
    const { body } = await post('acme', { tasks: [{ id: 'a', ...http() }] }, '?dry_run=true')
    expect([body.valid, body.errors[0].message]).toEqual([false, expect.stringContaining(refused)])
    expect(asked.length).toBe(before)
    expect((await run('ops', http())).status).toBe('success')
  })

  test('by waits', async () => {
    const wait = { type: 'wait', params: { http: { url: url() } }, timeout: 60_000 }
    const { status, error } = await run('acme', wait)
    expect([status, error]).toEqual(['failed', expect.stringContaining(refused)])
    expect((await run('ops', wait)).status).toBe('success')
  })

  test('by callbacks', async () => {
    const graph = { tasks: [{ id: 'a', type: 'noop' }], callback: { url: url('hook') } }
    const { status, body } = await post('acme', { ...graph, scope: 'graph' })
    expect([status, body.error]).toEqual([400, expect.stringContaining(refused)])
    expect((await post('acme', graph, '?dry_run=true')).body.errors[0].message).toContain(refused)
  })

  test('by MCP servers', async () => {
    const call = { type: 'mcp', tool_name: 'web/say', input: { words: 'hi' } }
    expect(await run('acme', call)).toMatchObject({
      ...{ status: 'failed', runtime: DENIED },
      error: expect.stringContaining(refused),
    })
    expect((await run('ops', call)).status).toBe('success')
  })

  test.skipIf(missingSandbox !== undefined)('by tasks of a runtime service', async () => {
    const curl = strict(`curl -s --noproxy '' ${url()}`, { allow: ['127.0.0.1'] })
    const { status, result } = await run('acme', curl)
    const { stdout } = result as { stdout: string }
    expect([status, stdout]).toEqual(['success', expect.stringContaining('is refused: its address is loopback')])
    expect(((await run('ops', curl)).result as { stdout: string }).stdout).toBe('inner')
  })
})

test('what the operator lists is reached, until it is listed no more, and redirects lead nowhere else', async () => {
  await listed(['127.0.0.1'])
  expect(await run('acme', { type: 'mcp', tool_name: 'web/say', input: { words: 'hi' } })).toMatchObject({
    status: 'success',
  })
  expect(await run('globex', http())).toMatchObject({ runtime: DENIED })
  expect(await run('acme', http('away'))).toMatchObject({
    ...{ status: 'failed', runtime: DENIED },
    error: expect.stringContaining('redirected to http://127.0.0.2'),
  })
  const before = asked.length
  const graph = { scope: 'graph', tasks: [{ id: 'a', type: 'noop' }], callback: { url: url('hook') } }
  expect((await post('acme', graph)).status).toBe(202)
  await until(() => asked.slice(before).some((request) => request.url.endsWith('/hook')))
  await listed([])
})

describe('a tenant gets the secrets that name it', () => {
  const ofProcess = (name: string) => ({ ...strict('test -n "$S"'), secrets: { S: name } })
  const sent = (name: string) => ({
    type: 'http',
    params: { url: url(), headers: { 'x-secret': { $secret: name } } },
  })
  const shell = (name: string) => ({
    ...{ type: 'shell', params: { command: 'sh', args: ['-c', 'test -n "$S"'] } },
    secrets: { S: name },
  })
  const denied = (name: string, tenant: string) => `the secret ${name} is not for tasks of tenant ${tenant}`

  test.skipIf(missingSandbox !== undefined)('in runtime tasks', async () => {
    expect((await run('acme', ofProcess('of-acme'))).status).toBe('success')
    expect((await run('globex', ofProcess('of-acme'))).error).toContain(denied('of-acme', 'globex'))
    expect((await run('acme', ofProcess('of-all'))).error).toContain(denied('of-all', 'acme'))
    expect((await run('ops', ofProcess('of-all'))).status).toBe('success')
    const carried = strict('true', {
      allow: [{ host: 'http.example:80', headers: { 'x-secret': { secret: 'of-all' } } }],
    })
    expect((await run('acme', carried)).error).toContain(denied('of-all', 'acme'))
  })

  test('in tasks of a service, callbacks, and requests', async () => {
    expect((await run('trusted', shell('of-acme'))).status).toBe('success')
    expect((await run('trusted', shell('of-all'))).error).toContain(denied('of-all', 'acme'))
    await listed(['127.0.0.1'])
    expect((await run('acme', sent('of-all'))).error).toContain(denied('of-all', 'acme'))
    expect((await run('ops', sent('of-all'))).status).toBe('success')
    expect((await run('acme', sent('of-acme'))).status).toBe('success')
    expect((await run('acme', sent('of-nobody'))).error).toContain(denied('of-nobody', 'acme'))
    const headers = { 'x-secret': { $secret: 'of-all' } }
    const graph = { scope: 'graph', tasks: [{ id: 'a', type: 'noop' }], callback: { url: url(), headers } }
    const { status, body } = await post('acme', graph)
    expect([status, body.error]).toEqual([400, expect.stringContaining(denied('of-all', 'acme'))])
    await listed([])
  })
})

test.skipIf(missingSandbox !== undefined)(
  'a runtime service runs tasks for the tenant of the token, and hands its files to no other',
  async () => {
    const task = strict('echo acme > f')
    const { status, handle_id } = await run('acme', task)
    expect(status).toBe('success')
    const answer = await pair.runtime.fetch('/api/v1/tasks?tenant=acme')
    const { tasks } = (await answer.json()) as { tasks: object[] }
    expect(tasks).toContainEqual(expect.objectContaining({ task_id: handle_id }))
    const reading = strict('cat f', undefined, { inputs: { f: { task_id: handle_id, file: 'f' } } })
    expect(await run('acme', reading)).toMatchObject({ status: 'success', result: { stdout: 'acme\n' } })
    expect((await run('globex', reading)).error).toMatch(OF_OTHERS)
    const claiming = strict('true', undefined, { control_context: { tenant: 'globex' } })
    const { status: refused, body } = await post('trusted', { tasks: [{ id: 'a', ...claiming }] })
    expect([refused, body.error]).toEqual([
      403,
      'task a: params.control_context.tenant: the token is of tenant acme (leave it out)',
    ])
    const later = strict('cat f', undefined, {
      ...{ control_context: { $param: 'c' }, inputs: { f: { task_id: handle_id, file: 'f' } } },
    })
    const graph = { scope: 'graph', params: { c: { tenant: 'acme' } }, tasks: [{ id: 'a', ...later }] }
    const { body: accepted } = await post('globex', graph)
    const look = async () =>
      (await pair.control.fetch(`/graphs/${accepted.graph_id}/tasks/a`, { headers: tokens.as('globex') })).json()
    const ended = await until(look as () => Promise<TaskRecord>, ({ finished_at }) => finished_at !== undefined)
    expect(ended.error).toMatch(OF_OTHERS)
  },
)
