/**
 * Goal: each route asks for the right that this table gives it, and a route without a row here fails.
 * Method: the routes are read from the app itself, with and without a database; each is asked for with each right alone.
 */
import { expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { describedControl, describedRuntime } from '../../../scripts/described-apps.ts'
import { RIGHTS, type Right, type RouteRight } from '../../../shared/contract/rights.ts'
import type { Caller } from '../../../shared/http/callers.ts'
import { descriptionIn } from '../../../shared/http/openapi/route.ts'
import { RouteRights } from '../../../shared/http/route-rights.ts'

const TASK = ['/tasks/:id', '/graphs/:id/tasks/:task_id']
const ofTask = (method: string, path: string, right: RouteRight) =>
  TASK.map((task) => [`${method} ${task}${path}`, right] as const)

const TABLE: Readonly<Record<string, RouteRight>> = {
  ...{ 'GET /': 'none', 'GET /assets/:name': 'none', 'GET /docs': 'none', 'GET /openapi.json': 'none' },
  ...{ 'GET /audit': 'operate', 'GET /audit/events': 'operate', 'GET /health': 'none', 'GET /readyz': 'none' },
  ...{ 'GET /tasks': 'read', 'GET /graphs': 'read', 'GET /graphs/:id': 'read', 'GET /graphs/:id/tasks': 'read' },
  ...{ 'GET /events': 'read', 'GET /graphs/:id/events': 'read', 'GET /metrics': 'read' },
  ...{
    'GET /runtime': 'read',
    'GET /runtimes': 'read',
    'GET /schedules': 'read',
    'GET /schedule-files': 'read',
    'GET /schedules/:name': 'read',
  },
  ...{ 'GET /adapters/capabilities': 'read', 'GET /adapters/tools': 'read' },
  ...{ 'GET /mcp/tools': 'read', 'GET /mcp/tasks/:id': 'read' },
  ...Object.fromEntries([
    ...['', '/events', '/logs', '/network', '/files', '/files/*'].flatMap((path) => ofTask('GET', path, 'read')),
    ...ofTask('POST', '/cancel', 'cancel'),
    ...ofTask('POST', '/retry', 'submit'),
    ...ofTask('POST', '/approve', 'answer'),
    ...ofTask('POST', '/reject', 'answer'),
    ...ofTask('POST', '/signal', 'answer'),
    ...ofTask('DELETE', '', 'operate'),
  ]),
  ...{
    'POST /tasks': 'submit',
    'POST /graphs/:id/rerun': 'submit',
    'POST /graphs/:id/retry': 'submit',
    'PATCH /graphs/:id': 'submit',
    'POST /mcp/call': 'submit',
  },
  ...{ 'POST /adapters/actions': 'submit', 'POST /adapters/translate': 'submit' },
  ...{ 'POST /graphs/:id/cancel': 'cancel', 'DELETE /graphs/:id': 'operate', 'POST /mcp': 'any' },
  ...{ 'PUT /schedules/:name': 'operate', 'DELETE /schedules/:name': 'operate' },
  ...{ 'POST /schedules/:name/pause': 'operate', 'POST /schedules/:name/resume': 'operate' },
  ...{ 'POST /schedules/:name/trigger': 'operate', 'POST /runtimes': 'operate', 'DELETE /runtimes/:name': 'operate' },
  ...{ 'GET /pauses': 'read', 'POST /pause': 'operate', 'POST /resume': 'operate' },
  ...{ 'POST /session': 'none', 'GET /session': 'any', 'DELETE /session': 'any', 'POST /session/links': 'any' },
  ...{ 'POST /graphs/:id/pause': 'cancel', 'POST /graphs/:id/resume': 'cancel' },
  ...{ 'POST /runtimes/:name/drain': 'operate', 'POST /runtimes/:name/undrain': 'operate' },
}

const OF_REPLICAS: Readonly<Record<string, RouteRight>> = {
  ...{
    'GET /replicas/attempts': 'service',
    'GET /replicas/graphs/:id/wait': 'service',
    'GET /replicas/tasks': 'service',
  },
  ...{ 'GET /replicas/newest-tasks': 'service', 'GET /replicas/graphs': 'service', 'GET /replicas/events': 'service' },
  ...{ 'POST /replicas/ids': 'service' },
}

const app = describedControl({ hasDatabase: true })
const routes = app.routes.filter(({ method }) => method !== 'ALL')

test('each route declares the right of its row, and each row has a route', () => {
  const declared = routes.map(({ method, path, hooks }) => [`${method} ${path}`, descriptionIn(hooks)?.right] as const)
  expect(Object.fromEntries(declared)).toEqual({ ...TABLE, ...OF_REPLICAS })
  const ofOne = describedControl().routes.filter(({ method }) => method !== 'ALL')
  expect(ofOne.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(TABLE).sort())
})

const callerWith = (...rights: Right[]): Caller => ({
  grant: { name: 'someone', rights },
  signal: new AbortController().signal,
})

/** The routes that a caller may use. */
function allowed(caller: Caller, rights = new RouteRights(app)): string[] {
  return routes.flatMap(({ method, path }) => {
    try {
      rights.ensure(caller, method, path)
      return [`${method} ${path}`]
    } catch {
      return []
    }
  })
}

const rowsWith = (...wanted: RouteRight[]) => Object.keys(TABLE).filter((route) => wanted.includes(TABLE[route]!))

test.each([...RIGHTS])('the right %s alone opens its routes and no other', (right) => {
  const own: RouteRight[] = right === 'host' ? [] : [right === 'cancel_own' ? 'cancel' : right]
  expect(allowed(callerWith(right)).sort()).toEqual(rowsWith('none', 'any', ...own).sort())
})

test('no right opens what only replicas ask each other', () => {
  expect(allowed(callerWith(...RIGHTS)).sort()).toEqual(Object.keys(TABLE).sort())
  expect(allowed(callerWith()).sort()).toEqual(rowsWith('none', 'any').sort())
})

test('a HEAD needs what its GET needs', () => {
  const rights = new RouteRights(app)
  expect(() => rights.ensure(callerWith('submit'), 'HEAD', '/tasks')).toThrow('lacks the right read')
  rights.ensure(callerWith('read'), 'HEAD', '/tasks')
})

test('a route that declares no right is for the token of the service alone', () => {
  const undeclared = new Elysia().get('/new', () => 'new')
  expect(() => new RouteRights(undeclared).ensure(callerWith(...RIGHTS), 'GET', '/new')).toThrow(
    'only the token of the service',
  )
})

const OF_RUNTIME: Readonly<Record<string, RouteRight>> = {
  ...{ 'GET /docs': 'none', 'GET /openapi.json': 'none', 'GET /healthz': 'none', 'GET /readyz': 'none' },
  ...Object.fromEntries(
    [
      '',
      '/:id',
      '/:id/events',
      '/:id/logs',
      '/:id/files',
      '/:id/files/*',
      '/:id/network',
      '/:id/bundle',
      '/:id/tar',
    ].map((path) => [`GET /api/v1/tasks${path}`, 'read'] as const),
  ),
  ...{ 'POST /api/v1/tasks': 'submit', 'POST /api/v1/tasks/:id/kill': 'cancel', 'DELETE /api/v1/tasks/:id': 'operate' },
  ...{ 'GET /api/v1/runtime/files/:sha256': 'read', 'PUT /api/v1/runtime/files/:sha256': 'submit' },
  ...Object.fromEntries(
    ['info', 'capabilities', 'config', 'resources'].map((name) => [`GET /api/v1/runtime/${name}`, 'read'] as const),
  ),
  ...{ 'GET /metrics': 'read' },
}

test('each route of the runtime service declares the right of its row', () => {
  const runtime = describedRuntime().routes.filter(({ method }) => method !== 'ALL')
  const declared = runtime.map(({ method, path, hooks }) => [`${method} ${path}`, descriptionIn(hooks)?.right] as const)
  expect(Object.fromEntries(declared)).toEqual(OF_RUNTIME)
})

/** Routes of the runtime service about all tenants together. */
const OF_SERVICE = ['GET /api/v1/runtime/config', 'GET /metrics']

test('a token with a tenant is refused what belongs to the whole runtime service, and nothing else', () => {
  const runtime = describedRuntime()
  const rights = new RouteRights(runtime)
  const caller: Caller = { ...callerWith(...RIGHTS), grant: { name: 'ci', rights: RIGHTS, tenant: 'acme' } }
  const refused = Object.keys(OF_RUNTIME).filter((route) => {
    try {
      const [method, path] = route.split(' ') as [string, string]
      rights.ensure(caller, method, path)
      return false
    } catch (error) {
      expect(String(error)).toContain(`${route} belongs to the whole service: the token ci is of tenant acme`)
      return true
    }
  })
  expect(refused.sort()).toEqual(OF_SERVICE)
})
