/**
 * Goal: what the services say of themselves is true. Method: every route is asked for every success that it describes, and
 * for refusals; each answer has to fit its schema, without a field more.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { describedControl, describedRuntime } from '../../scripts/described-apps.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { OpenApiDocument } from '../../shared/http/openapi/document.ts'
import { type DescribedRoute, describedRoutes } from '../../shared/http/openapi/route.ts'
import { type Control, startControl } from '../support/control.ts'
import { DescribedService } from '../support/described.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

const post = (body: unknown, headers: Record<string, string> = {}) => ({ body: JSON.stringify(body), headers })

describe.each([
  ['control', describedRoutes(describedControl())],
  ['runtime', describedRoutes(describedRuntime())],
])('the routes of %s', (_, routes) => {
  test('are all described', () => {
    expect(routes.length).toBeGreaterThan(10)
    expect(routes.filter(({ description }) => description === undefined).map(nameOf)).toEqual([])
  })

  test('have a description for each parameter of their path, and for no other', () => {
    const wrong = routes.filter(({ path, description }) => {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
      return (
        inPath.toSorted().join() !==
        Object.keys(description?.params ?? {})
          .toSorted()
          .join()
      )
    })
    expect(wrong.map(nameOf)).toEqual([])
  })

  test('have sentences', () => {
    const texts = routes.flatMap(({ description }) => {
      const { description: more = 'None.', params = {}, headers = {}, answers, errors = {}, query = {} } = description!
      const inQuery = Object.values(query).map(({ description: text }) => String(text))
      const ofAnswers = Object.values(answers).map(({ description: text }) => text)
      return [
        more,
        ...inQuery,
        ...ofAnswers,
        ...[params, headers, errors].flatMap((some) => Object.values<string>(some)),
      ]
    })
    expect(texts.filter((text) => !/^\S.*\.$/.test(text))).toEqual([])
  })

  test('have summaries of their own', () => {
    const summaries = routes.map(({ description }) => description!.summary)
    expect(new Set(summaries).size).toBe(summaries.length)
  })
})

const nameOf = ({ method, path }: DescribedRoute) => `${method} ${path}`

const GRAPH = {
  name: 'nightly',
  labels: { team: 'web' },
  tasks: [
    { id: 'ok', type: 'shell', params: { command: 'echo', args: ['hello'] }, annotations: { a: 'b' }, timeout: 5000 },
    { id: 'bad', type: 'shell', params: { command: 'ls', args: ['/no/such/file'] }, retry: 1 },
    { id: 'skipped', type: 'noop', depends_on: ['bad'] },
    { id: 'warned', type: 'os', tool_name: 'no-such-tool' },
  ],
}

describe('real answers of control', () => {
  let control: Control
  let service: DescribedService
  beforeAll(async () => {
    control = await startControl({ flags: ['--audit', 'all'] })
    service = new DescribedService(control.url, describedControl())
  })
  afterAll(() => control.dispose())

  test('to graphs and tasks', async () => {
    await service.ask('POST /tasks', { ...post(GRAPH), query: '?dry_run=true' })
    const { body } = await service.ask('POST /tasks', post(GRAPH))
    await control.allEnded()
    const { graph_id } = body as { graph_id: string }
    await service.ask('GET /graphs', { query: '?state=failed&label=team%3Dweb' })
    await service.ask('GET /graphs/{id}', { values: { id: graph_id } })
    for (const id of ['ok', 'bad', 'skipped', 'warned']) await service.ask('GET /tasks/{id}', { values: { id } })
    await service.ask('GET /tasks/{id}/logs', { values: { id: 'ok' }, query: '?tail=1' })
    await service.ask('GET /tasks/{id}/network', { values: { id: 'ok' } })
    await service.ask('GET /tasks')
    await service.ask('GET /tasks', { query: '?limit=1&status=failed' })
    await control.submit([{ id: 'slow', type: 'sleep', params: { duration_ms: 60_000 } }])
    await control.reached('slow', 'running')
    await service.ask('GET /tasks/{id}', { values: { id: 'slow' }, query: '?wait_ms=1' })
    for (const id of ['slow', 'ok', 'bad']) await service.ask('POST /tasks/{id}/cancel', { values: { id } })
    await service.ask('GET /tasks/{id}', { values: { id: 'slow' } })
    await service.ask('DELETE /tasks/{id}', { values: { id: 'ok' } })
  })

  test('to approvals and waits', async () => {
    const tasks = [
      ...['yes', 'no'].map((id) => ({ id, type: 'approval', params: { message: 'Go?' }, timeout: 60_000 })),
      { id: 'wait', type: 'wait' },
    ]
    const who = post({ who: 'ada', why: 'so it is' })
    const paths = ['/tasks/{id}', '/graphs/{id}/tasks/{task_id}'] as const
    for (const path of paths) {
      const scope = path.startsWith('/graphs') && { scope: 'graph' }
      const { body } = await service.ask('POST /tasks', post({ tasks, ...scope }))
      const { graph_id } = body as { graph_id: string }
      const valuesOf = (id: string) => (scope ? { id: graph_id, task_id: id } : { id })
      const values = valuesOf('wait')
      await until(
        async () => ((await service.ask(`GET ${path}`, { values })).body as TaskRecord).waiting?.reason,
        'signal',
      )
      await service.ask(`POST ${path}/signal`, { values, method: 'POST', body: '{' })
      await service.ask(`POST ${path}/signal`, { values, ...post('x'.repeat(70_000)) })
      await service.ask(`POST ${path}/signal`, { values, ...post({ build: 42 }) })
      await service.ask(`POST ${path}/signal`, { values, ...post({ build: 43 }) })
      await service.ask(`POST ${path}/signal`, { values: valuesOf('nobody'), ...post(1) })
      for (const [id, verb] of [
        ['yes', 'approve'],
        ['no', 'reject'],
      ] as const) {
        const values = valuesOf(id)
        await until(
          async () => ((await service.ask(`GET ${path}`, { values })).body as TaskRecord).waiting?.reason,
          'approval',
        )
        await service.ask(`POST ${path}/${verb}`, { values, ...post({ who: '' }) })
        await service.ask(`POST ${path}/${verb}`, { values, ...post({ who: 'x'.repeat(70_000) }) })
        await service.ask(`POST ${path}/${verb}`, { values, ...who })
        await service.ask(`POST ${path}/${verb}`, { values, ...post({ who: 'bob' }) })
        await service.ask(`POST ${path}/${verb}`, { values: valuesOf('nobody'), ...who })
      }
      for (const id of ['no', 'nobody']) await service.ask(`POST ${path}/retry`, { values: valuesOf(id) })
    }
  })

  test('to graphs as a whole', async () => {
    const tasks = [
      { id: 'long', type: 'sleep', params: { duration_ms: 60_000 } },
      { id: 'later', type: 'noop', depends_on: ['long'] },
    ]
    const { body } = await service.ask('POST /tasks', { ...post({ tasks }), query: '?wait_ms=1' })
    const values = { id: (body as { graph_id: string }).graph_id }
    await service.ask('GET /graphs/{id}', { values })
    await service.ask('DELETE /graphs/{id}', { values })
    await service.ask('PATCH /graphs/{id}', { values, ...post({ change: { later: { priority: 1 } } }) })
    await service.ask('PATCH /graphs/{id}', { values, ...post({ remove: ['long'] }) })
    for (const verb of ['pause', 'resume']) await service.ask(`POST /graphs/{id}/${verb}`, { values })
    await service.ask('POST /graphs/{id}/cancel', { values })
    await service.ask('POST /graphs/{id}/pause', { values })
    await service.ask('GET /graphs/{id}', { values, query: '?wait_ms=10000' })
    await service.ask('POST /graphs/{id}/retry', { values })
    await service.ask('POST /graphs/{id}/cancel', { values })
    await service.ask('GET /graphs/{id}', { values, query: '?wait_ms=10000' })
    const again = await service.ask('POST /graphs/{id}/rerun', { values })
    await service.ask('POST /graphs/{id}/rerun', { values, ...post({ from: ['none'] }) })
    await service.ask('POST /graphs/{id}/rerun', { values: { id: (again.body as { graph_id: string }).graph_id } })
    await service.ask('DELETE /graphs/{id}', { values })
  })

  test('to tasks of a graph with ids of its own', async () => {
    const { body } = await service.ask('POST /tasks', post({ ...GRAPH, scope: 'graph' }))
    const { graph_id: id } = body as { graph_id: string }
    await service.ask('GET /graphs/{id}', { values: { id }, query: '?wait_ms=20000' })
    await service.ask('GET /graphs/{id}/tasks', { values: { id } })
    const TASK = '/graphs/{id}/tasks/{task_id}'
    for (const task_id of ['ok', 'none']) {
      const values = { id, task_id }
      await service.ask(`GET ${TASK}`, { values })
      await service.ask(`GET ${TASK}/logs`, { values })
      await service.ask(`GET ${TASK}/network`, { values })
      await service.ask(`POST ${TASK}/cancel`, { values })
      await service.ask(`DELETE ${TASK}`, { values })
    }
  })

  test('to the files of tasks', async () => {
    await using runtime = await startRuntime()
    const values = { name: 'files' }
    await service.ask('POST /runtimes', post({ ...values, url: runtime.url }))
    const files = { id: 'files', type: 'runtime.script', params: { script: 'mkdir d; echo hi > d/f' } }
    const { graph_id } = await control.submit([files])
    await control.ended('files')
    for (const [path, at] of [
      ['/tasks/{id}/files', { id: 'files' }],
      ['/graphs/{id}/tasks/{task_id}/files', { id: graph_id, task_id: 'files' }],
    ] as const) {
      await service.ask(`GET ${path}`, { values: at, query: '?path=d' })
      await service.ask(`GET ${path}/{path}`, { values: { ...at, path: 'd' } })
      await service.ask(`GET ${path}/{path}`, { values: { ...at, path: 'd' }, headers: { range: 'bytes=0-0' } })
      const file = { ...at, path: 'd/f' }
      await service.ask(`GET ${path}/{path}`, { values: file, headers: { range: 'bytes=0-0' } })
      await service.ask(`GET ${path}/{path}`, { values: file, headers: { range: 'bytes=9-' } })
      await service.ask(`GET ${path}/{path}`, { values: { ...at, path: 'none' }, query: '?attempt=1' })
    }
    await service.ask('DELETE /tasks/{id}', { values: { id: 'files' } })
    await service.ask('DELETE /runtimes/{name}', { values })
  })

  test('to actions', async () => {
    const action = { adapter: 'codex', metadata: { a: 'b' }, action: { kind: 'os.noop', input: {} } }
    await service.ask('GET /adapters/capabilities')
    await service.ask('GET /adapters/tools')
    await service.ask('POST /adapters/translate', post(action))
    await service.ask('POST /adapters/actions', post(action))
  })

  test('to calls of tools, and to MCP', async () => {
    await service.ask('GET /mcp/tools')
    const { body } = await service.ask('POST /mcp/call', post({ tool_name: 'builtin/echo', input: { message: 'hi' } }))
    const { handle_id: id } = body as { handle_id: string }
    await control.ended(id)
    await service.ask('GET /mcp/tasks/{id}', { values: { id } })
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    await service.ask('POST /mcp', post({ jsonrpc: '2.0', id: 1, method: 'initialize', params }, headers))
    await service.ask('POST /mcp', post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers))
  })

  test('that stream events', async () => {
    const { graph_id: id } = await control.submit([{ id: 'watched', type: 'noop' }])
    await service.ask('GET /graphs/{id}/events', { values: { id }, query: '?until=ended&after=0' })
    await service.ask('GET /tasks/{id}/events', { values: { id: 'watched' }, query: '?until=ended' })
    const inGraph = { id, task_id: 'watched' }
    await service.ask('GET /graphs/{id}/tasks/{task_id}/events', { values: inGraph, query: '?until=ended' })
    const endless = await control.fetch('/events')
    expect(endless.headers.get('content-type')).toStartWith('text/event-stream')
    await endless.body?.cancel()
    service.seen.add(`GET /events ${endless.status}`)
    await service.ask('GET /events', { query: '?after=x' })
  })

  test('about the service', async () => {
    await service.ask('GET /health')
    await service.ask('GET /readyz')
    await service.ask('GET /metrics')
    await service.ask('GET /metrics', { headers: { accept: 'text/plain' } })
    await service.ask('GET /runtime')
    const entry = { name: 'gpu-1', url: 'http://127.0.0.1:1', labels: { gpu: '' } }
    const values = { name: 'gpu-1' }
    expect((await service.ask('POST /runtimes', post(entry))).status).toBe(201)
    expect((await service.ask('POST /runtimes', post(entry))).status).toBe(200)
    await service.ask('POST /runtimes/{name}/drain', { values })
    await service.ask('POST /runtimes/{name}/undrain', { values })
    await service.ask('GET /runtimes')
    expect((await service.ask('DELETE /runtimes/{name}', { values })).status).toBe(200)
    for (const route of ['POST /runtimes/{name}/drain', 'DELETE /runtimes/{name}']) {
      expect((await service.ask(route, { values })).status).toBe(404)
    }
    await service.ask('DELETE /runtimes/{name}', { values, query: '?lost=perhaps' })
    await service.ask('POST /runtimes', post({ name: '..' }))
    const schedule = { values: { name: 'nightly' } }
    const put = { cron: '0 3 * * *', graph: { tasks: [{ id: 'a', type: 'noop' }] } }
    for (let i = 0; i < 2; i++) await service.ask('PUT /schedules/{name}', { ...schedule, body: JSON.stringify(put) })
    await service.ask('POST /schedules/{name}/trigger', schedule)
    await service.ask('POST /schedules/{name}/pause', schedule)
    await service.ask('POST /schedules/{name}/resume', schedule)
    await service.ask('GET /schedules')
    await service.ask('POST /pause', post({ type: 'shell', why: 'x' }))
    await service.ask('GET /pauses')
    await service.ask('POST /resume', post({ type: 'shell' }))
    await service.ask('POST /pause', post({ type: 'none' }))
    await service.ask('POST /resume', post({ type: 'none' }))
    await service.ask('GET /audit', { query: '?limit=2' })
    await service.ask('GET /audit', { query: '?limit=0' })
    const endless = await control.fetch('/audit/events')
    expect(endless.headers.get('content-type')).toStartWith('text/event-stream')
    await endless.body?.cancel()
    service.seen.add(`GET /audit/events ${endless.status}`)
    await service.ask('GET /schedule-files')
    await service.ask('GET /schedules/{name}', schedule)
    await service.ask('DELETE /schedules/{name}', schedule)
    await service.ask('GET /schedules/{name}', schedule)
    await service.ask('PUT /schedules/{name}', { ...schedule, body: '{}' })
    await service.ask('GET /session')
    await service.ask('DELETE /session')
    await service.ask('POST /session/links')
    await service.ask('GET /openapi.json')
    await service.ask('GET /docs')
    const { body: page } = await service.ask('GET /')
    const names = [...String(page).matchAll(/"assets\/([^"]+)"/g)].map(([, name]) => name!)
    expect(names.length).toBe(3)
    for (const name of [...names, 'none']) await service.ask('GET /assets/{name}', { values: { name } })
    await service.ask('GET /assets/{name}', { values: { name: names[0]! }, headers: { 'if-none-match': '*' } })
  })

  test('to those who sign in', async () => {
    await using guarded = await startControl({ env: { SERVICE_TOKEN: 'sesame' } })
    const closed = new DescribedService(guarded.url, describedControl())
    for (const body of ['sesame', 'wrong', 'x'.repeat(17_000)]) await closed.ask('POST /session', post({ token: body }))
    await closed.ask('POST /session/links', { headers: { authorization: 'Bearer sesame' } })
    for (const seen of closed.seen) service.seen.add(seen)
  })

  test('that refuse', async () => {
    const none = { values: { id: 'nobody' } }
    await service.ask('POST /tasks', post('{'))
    await service.ask('POST /tasks', post(GRAPH, { 'idempotency-key': 'k' }))
    await service.ask('POST /tasks', post({ tasks: [] }, { 'idempotency-key': 'k' }))
    await service.ask('GET /tasks', { query: '?limit=0' })
    for (const route of [
      'GET /tasks/{id}',
      'POST /tasks/{id}/cancel',
      'DELETE /tasks/{id}',
      'GET /mcp/tasks/{id}',
      'GET /tasks/{id}/logs',
      'GET /tasks/{id}/network',
      'GET /tasks/{id}/files',
      'GET /graphs/{id}',
      'POST /graphs/{id}/cancel',
      'POST /graphs/{id}/pause',
      'POST /graphs/{id}/resume',
      'DELETE /graphs/{id}',
    ]) {
      await service.ask(route, none)
    }
    await service.ask('POST /adapters/actions', post({}))
    await service.ask('POST /adapters/translate', post({}))
    await service.ask('POST /mcp/call', post({}))
  })

  test('have all been seen', () => {
    expect(service.unseen()).toEqual([])
  })
})

describe('real answers of the runtime service', () => {
  let runtime: Runtime
  let service: DescribedService
  beforeAll(async () => {
    runtime = await startRuntime()
    service = new DescribedService(runtime.url, describedRuntime())
  })
  afterAll(() => runtime.dispose())

  const TASKS = '/api/v1/tasks'

  test('to tasks', async () => {
    const execution = { kind: 'script', script: 'echo hello; exit $TASK_EXIT', env: { TASK_EXIT: '3' } }
    for (const [id, more] of [
      ['plain', {}],
      ['fenced', { sandbox: { profile: 'linux_sandbox' } }],
      ['limited', { limits: { memory_bytes: 1e9, pids_max: 32, cpu_time_sec: 5 }, metadata: { a: 'b' } }],
    ] as const) {
      await service.ask(`POST ${TASKS}`, { ...post({ task_id: id, execution, ...more }), query: '?dry_run=true' })
      await service.ask(`POST ${TASKS}`, post({ task_id: id, execution, ...more }))
      await runtime.ended(id)
      await service.ask(`GET ${TASKS}/{id}`, { values: { id } })
      await service.ask(`GET ${TASKS}/{id}/events`, { values: { id } })
      await service.ask(`GET ${TASKS}/{id}/network`, { values: { id } })
      await service.ask(`GET ${TASKS}/{id}/logs`, { values: { id }, query: '?stream=stdout&follow=true' })
    }
    await service.ask(`GET ${TASKS}`, { query: '?limit=1&status=failed' })
    const files = { task_id: 'files', execution: { kind: 'script', script: 'mkdir dir; echo hello > file; ln -s x y' } }
    await service.ask(`POST ${TASKS}`, post(files))
    await runtime.ended('files')
    await service.ask(`GET ${TASKS}/{id}/files`, { values: { id: 'files' } })
    const FILE = `GET ${TASKS}/{id}/files/{path}`
    for (const path of ['file', 'dir', 'y']) await service.ask(FILE, { values: { id: 'files', path } })
    for (const range of ['bytes=1-2', 'bytes=99-']) {
      await service.ask(FILE, { values: { id: 'files', path: 'file' }, headers: { range } })
    }
    const BUNDLE = `GET ${TASKS}/{id}/bundle`
    await service.ask(BUNDLE, { values: { id: 'files' }, query: '?file=file' })
    await service.ask(BUNDLE, { values: { id: 'files' }, query: '?only=digest' })
    const tar = { values: { id: 'files' }, query: '?file=dir' }
    await service.ask(`GET ${TASKS}/{id}/tar`, tar)
    for (const range of ['bytes=1-2', 'bytes=9999-']) {
      await service.ask(`GET ${TASKS}/{id}/tar`, { ...tar, headers: { range } })
    }
    const values = { sha256: new Bun.CryptoHasher('sha256').update('x').digest('hex') }
    for (const body of ['x', 'x', 'y']) await service.ask('PUT /api/v1/runtime/files/{sha256}', { values, body })
    await service.ask('GET /api/v1/runtime/files/{sha256}', { values })
    await service.ask('GET /api/v1/runtime/files/{sha256}', { values: { sha256: 'x' } })
    const id = await runtime.script('sleep 60', { limits: { memory_bytes: 1e9 } })
    await service.ask('GET /api/v1/runtime/resources')
    await service.ask(`DELETE ${TASKS}/{id}`, { values: { id } })
    await service.ask(`POST ${TASKS}/{id}/kill`, { values: { id } })
    await runtime.ended(id)
    await service.ask(`DELETE ${TASKS}/{id}`, { values: { id } })
    await service.ask(`GET ${TASKS}/{id}`, { values: { id } })
    await service.ask(`POST ${TASKS}`, post({}))
  })

  test('about the service', async () => {
    for (const name of ['info', 'capabilities', 'config', 'resources']) await service.ask(`GET /api/v1/runtime/${name}`)
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs']) await service.ask(`GET ${path}`)
  })

  test('have all been seen', () => {
    expect(service.unseen()).toEqual([])
  })
})

describe('with a token', () => {
  test.each(['/', '/openapi.json', '/docs'])('%s is open, as it holds nothing secret', async (path) => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame' } })
    expect((await control.fetch(path)).status).toBe(200)
    expect((await control.fetch('/tasks')).status).toBe(401)
  })
})

test('the document names the paths, refers only to schemas that it has, and holds no words for our error texts', async () => {
  await using control = await startControl()
  const text = await (await control.fetch('/openapi.json')).text()
  const document = JSON.parse(text) as OpenApiDocument
  expect(document.openapi).toBe('3.1.0')
  expect(document.paths['/tasks/{id}']?.get?.operationId).toBe('readTask')
  const names = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!)
  expect(names.filter((name) => !(name in document.components.schemas))).toEqual([])
  expect(text).not.toContain('"expected"')
})

test('parameters that are true or false are described as such', async () => {
  await using control = await startControl()
  const { paths } = (await (await control.fetch('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { parameters: { name: string; schema: object }[] }>>
  }
  const schemaOf = (path: string, method: string, name: string) =>
    paths[path]?.[method]?.parameters.find((parameter) => parameter.name === name)?.schema
  const flag = { type: 'string', enum: ['true', 'false', '1', '0', ''] }
  expect(schemaOf('/tasks', 'post', 'dry_run')).toEqual(flag)
  expect(schemaOf('/runtimes/{name}', 'delete', 'lost')).toEqual(flag)
})

test('the page needs no script and nothing from elsewhere, escapes what is searched, and finds by words', async () => {
  await using control = await startControl()
  const response = await control.fetch('/docs?q=%3Cscript%3E%22')
  const page = await response.text()
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/)
  expect(page).not.toContain('<script')
  expect(page).not.toMatch(/(src|href)="(https?:)?\/\//)
  const found = await (await control.fetch('/docs?q=wait_ms+task')).text()
  expect(found).toContain('id="readTask"')
  expect(found).not.toContain('id="listToolsOfAllMcpServers"')
  const anchors = [...found.matchAll(/href="#([^"]+)"/g)].map(([, anchor]) => anchor!)
  expect(anchors.filter((anchor) => !found.includes(`id="${anchor}"`))).toEqual([])
  expect(found).toContain(`curl -s &#39;${control.url}/tasks/{id}&#39;`)
})
