/**
 * Goal: the guard is asked on every route, also on one that is added later.
 * Method: the routes are read from the app itself, and each is asked with every method, as hostile pages would, of the app
 * and of a server that listens.
 */
import { afterAll, expect, spyOn, test } from 'bun:test'
import { Callbacks } from '../../../control/callbacks/callbacks.ts'
import { noop } from '../../../control/executors/os/noop.ts'
import { OsExecutor } from '../../../control/executors/os/os.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { RuntimePool } from '../../../control/executors/runtime/pool.ts'
import { controlApp } from '../../../control/http/app.ts'
import { McpServers } from '../../../control/mcp-client/servers.ts'
import { CallerQuotas } from '../../../control/operations/caller-quotas.ts'
import { EventStreams } from '../../../control/operations/event-streams.ts'
import { Readiness } from '../../../control/operations/readiness.ts'
import { AddressGuard } from '../../../control/outbound/address-guard.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { ScheduleFiles } from '../../../control/schedules/schedule-files.ts'
import { Schedules } from '../../../control/schedules/schedules.ts'
import { Counters } from '../../../control/task/counters.ts'
import { Retention } from '../../../control/task/retention.ts'
import { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { createGuard } from '../../../shared/http/guard.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { openEmbedded } from '../../support/embedded-keeper.ts'
import { noServerOptions } from '../../support/mcp.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { servedApp } from '../../support/served-app.ts'
import { tempDir } from '../../support/temp.ts'

const dir = tempDir()
const log = silentLog()
const { store, keeper } = await openEmbedded(dir.path)
const executors = new ExecutorRegistry([new OsExecutor([noop])])
const retention = new Retention({ store, retentionMs: 0, maxStoredTasks: 1_000, log })
const mcpServers = new McpServers([], noServerOptions)
const scheduler = new Scheduler({
  ...{ store, executors, maxConcurrency: 1, log, abandonAfterMs: 1_000, serviceId: 'test' },
  keeper: memoryKeeper({}, { flush: () => keeper.flush() }),
})
afterAll(async () => {
  await keeper.stop()
  dir[Symbol.dispose]()
})

const stopping = new AbortController().signal
const addressGuards = {
  callbacks: new AddressGuard({ policy: 'public', flag: 'callback-policy' }),
  http: new AddressGuard({ policy: 'any', flag: 'http-policy' }),
}
const schedules = new Schedules({ store, kept: keeper.schedules, maxSchedules: 1, log })
const ground = {
  ...{ addressGuards, store, scheduler, executors, mcpServers, keeper, retention },
  callbacks: new Callbacks({
    ...{ store, keeper, guard: addressGuards.callbacks, secret: undefined, log },
    secrets: new SecretsDirectory(''),
  }),
  schedules,
  scheduleFiles: new ScheduleFiles('', keeper.schedules, schedules, log),
  runtimePool: new RuntimePool({ configured: [], token: undefined, keeper, log }),
  ...{
    listSkills: async () => [],
    unknownFields: 'refuse' as const,
    mcpToolsets: [],
    maxBodyBytes: 1024,
    maxFanOut: 10,
    log,
  },
  maxGraphResultBytes: 1024,
  secretsFault: () => undefined,
  tracing: undefined,
  quotas: new CallerQuotas(store, mcpServers),
  callerNamed: () => undefined,
  stopping,
}
const readiness = new Readiness(ground, () => false)
const parts = { ...ground, readiness, eventStreams: new EventStreams(ground, 1_000) }

const appWith = (token: string | undefined) =>
  controlApp({
    streamLimits: { keepAliveMs: 15_000, slowClientMs: 30_000 },
    ...{ parts, counters: new Counters(store), startedAt: 0 },
    guard: createGuard({ token, allowedHosts: [], listeningHost: '127.0.0.1' }),
  })

const EXEMPT = new Set(['/health', '/readyz', '/assets/x'])

/** Paths that need no token. */
const OPEN = new Set(['/', '/openapi.json', '/docs'])
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Every path of the app, with values for its parameters, and one that it does not have. */
const pathsOf = (app: ReturnType<typeof appWith>) =>
  [...new Set(app.routes.map(({ path }) => path.replace(/:\w+/g, 'x'))), '/no/such/path'].filter(
    (path) => !EXEMPT.has(path),
  )

async function statuses(
  app: ReturnType<typeof appWith>,
  headers: Record<string, string>,
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  const server = await servedApp(app)
  for (const path of pathsOf(app)) {
    for (const method of METHODS) {
      const response = await app.handle(new Request(`http://localhost${path}`, { method, headers }))
      found.set(`${method} ${path}`, response.status)
      const served = await fetch(`${server.url}${path}`, { method, headers })
      found.set(`${method} ${path} served`, served.status)
    }
  }
  await server.stop(0)
  return found
}

const others = (found: Map<string, number>, status: number) => [...found].filter(([, got]) => got !== status)

test('there are routes to walk', () => {
  expect(pathsOf(appWith(undefined)).length).toBeGreaterThanOrEqual(5)
})

test.each<Record<string, string>>([
  { host: 'evil.com' },
  { host: 'localhost', origin: 'http://evil.com' },
  { host: 'localhost', 'sec-fetch-site': 'cross-site' },
])('every route refuses %j with 403', async (headers) => {
  expect(others(await statuses(appWith(undefined), headers), 403)).toEqual([])
})

test('with a token, every route but pages without data needs it: 401', async () => {
  const refused = [...(await statuses(appWith('sesame'), { host: 'localhost' }))].filter(
    ([request]) => !OPEN.has(request.split(' ')[1]!),
  )
  expect(others(new Map(refused), 401)).toEqual([])
})

test('a refusal is an error body like any other, with the trace id', async () => {
  const headers = { host: 'evil.com', 'x-trace-id': 'abc' }
  const app = appWith(undefined)
  const server = await servedApp(app)
  for (const method of ['GET', 'POST', 'PUT']) {
    const request = new Request('http://localhost/tasks', { method, headers })
    for (const response of [await app.handle(request), await fetch(`${server.url}/tasks`, { method, headers })]) {
      expect(response.headers.get('x-trace-id')).toBe('abc')
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(await response.json()).toEqual({
        error: 'host evil.com is not allowed (allow it with --allowed-host, or use a token)',
      })
    }
  }
  await server.stop(0)
})

test('a graph is taken in and refused alike by the app and by a server that listens', async () => {
  const app = appWith(undefined)
  const server = await servedApp(app)
  const ask = {
    app: (method: string, body?: string) =>
      app.handle(
        new Request('http://localhost/tasks', { method, headers: { 'x-trace-id': 'abc' }, ...(body && { body }) }),
      ),
    server: (method: string, body?: string) =>
      fetch(`${server.url}/tasks`, { method, headers: { 'x-trace-id': 'abc' }, ...(body && { body }) }),
  }
  const seen = async (response: Response) => {
    const { date: _, 'content-length': __, ...headers } = response.headers.toJSON()
    return { status: response.status, headers, body: (await response.text()).replace(/"graph_id":"[^"]*"/, '') }
  }
  for (const [method, body] of [
    ['POST', '{"tasks":[{"id":"a","type":"noop"}]}'],
    ['POST', '{'],
    ['POST', '{"tasks":[]}'],
    ['POST', `{"tasks":"${'x'.repeat(2_000)}"}`],
    ['POST', undefined],
    ['PATCH', '{}'],
  ] as const) {
    const answer = await seen(await ask.server(method, body))
    expect(answer).toEqual(await seen(await ask.app(method, body)))
    if (body === '{"tasks":[{"id":"a","type":"noop"}]}') expect(answer.status).toBe(202)
    expect(answer.headers).toMatchObject({ 'x-trace-id': 'abc', 'content-type': 'application/json' })
  }
  await server.stop(0)
})

test('a start composes nothing for paths without a route, and collects no garbage for it', async () => {
  const app = appWith(undefined)
  using collect = spyOn(Bun, 'gc')
  const server = await servedApp(app)
  await (await fetch(`${server.url}/health`)).text()
  expect(collect).toHaveBeenCalledTimes(0)
  for (let i = 0; i < 2; i++) await (await fetch(`${server.url}/nothing`)).text()
  expect(collect).toHaveBeenCalledTimes(1) // Elysia composes its handler, and collects after it
  await server.stop(0)
})
