/**
 * Requests for the routes of an OpenAPI document: valid ones, ones with a few faults, and hostile ones. Ids of the
 * service are markers (`safe-values.ts`) until they are sent, so that a seed gives the same requests in every run.
 */
import fc from 'fast-check'
import type { OpenApiDocument, Operation, Parameter } from '../../../shared/http/openapi/document.ts'
import { type Json, odd, text, textNamed } from './safe-values.ts'
import { damaged, type Schemas, valuesOf } from './schema-values.ts'

/** A request before its markers are replaced. */
export interface PlannedRequest {
  /** `GET /tasks/{id}`, or undefined where a hostile target may mean any route. */
  readonly route: string | undefined
  readonly method: string
  readonly target: string
  readonly headers: readonly (readonly [string, string])[]
  /** Text with markers, or bytes as they are. */
  readonly body: string | Uint8Array | undefined
}

interface Route {
  readonly method: string
  readonly path: string
  readonly operation: Operation
  readonly schemas: Schemas
}

/** Bodies that the schemas of the document do not describe in detail: route to values. */
export type Bodies = Readonly<Record<string, fc.Arbitrary<Json>>>

/** Routes that change something get more cases than the others. */
const WEIGHTS: Readonly<Record<string, number>> = { 'POST /tasks': 12, 'POST /api/v1/tasks': 10, 'POST /mcp': 12 }

export function requestsOf(document: OpenApiDocument, bodies: Bodies): fc.Arbitrary<PlannedRequest> {
  const { schemas } = document.components
  const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(
      ([method, operation]): Route => ({ method: method.toUpperCase(), path, operation, schemas }),
    ),
  )
  return fc.oneof(
    ...routes.map((route) => {
      const isPlain = route.method === 'GET' && (route.operation.parameters ?? []).length === 0
      const weight = WEIGHTS[nameOf(route)] ?? (isPlain ? 1 : 3)
      return { weight, arbitrary: requestsTo(route, bodies) }
    }),
  )
}

const nameOf = ({ method, path }: Route): string => `${method} ${path}`

function requestsTo(route: Route, bodies: Bodies): fc.Arbitrary<PlannedRequest> {
  const valid = validRequests(route, bodies[nameOf(route)] ?? bodyOf(route))
  return fc.oneof(
    { weight: 4, arbitrary: valid },
    { weight: 5, arbitrary: nearlyValid(route, valid, bodies[nameOf(route)] ?? bodyOf(route)) },
    { weight: 2, arbitrary: valid.chain(hostile) },
  )
}

function bodyOf({ operation, schemas }: Route): fc.Arbitrary<Json> | undefined {
  const schema = operation.requestBody?.content['application/json']?.schema
  return schema === undefined ? undefined : valuesOf(schema, schemas)
}

const parametersIn = ({ operation }: Route, place: Parameter['in']): readonly Parameter[] =>
  (operation.parameters ?? []).filter((parameter) => parameter.in === place)

/** Values of `parameters`: some of them, or all that are required. */
function chosen(parameters: readonly Parameter[], schemas: Schemas): fc.Arbitrary<[string, string][]> {
  if (parameters.length === 0) return fc.constant([])
  const entries = parameters.map(({ name, schema, required }) =>
    fc
      .tuple(fc.nat(3), valuesOf(schema, schemas, name))
      .map(([skip, value]): [string, string][] => (required || skip === 0 ? [[name, asText(value)]] : [])),
  )
  return fc.tuple(...entries).map((lists) => lists.flat())
}

const asText = (value: Json): string =>
  typeof value === 'object' ? Object.values(value ?? {}).join(',') : String(value)

/** Only the name of a path parameter differs between a graph and a task: `/graphs/{id}` is a graph. */
const pathValue = (path: string, name: string): fc.Arbitrary<string> => {
  if (name === 'path') return textNamed('file')
  if (name === 'name') return fc.constantFrom('app.js', 'app.css', 'nope', '..')
  const kind = path.startsWith('/api') ? 'handle' : path.startsWith('/graphs/') && name === 'id' ? 'graph' : 'task'
  const tasks = kind === 'task' ? ['t0', 't1', 't2'] : []
  const known = fc.constantFrom(...[0, 1, 2, 3].map((n) => `@${kind}${n}`), ...tasks)
  return fc.oneof({ weight: 4, arbitrary: known }, { weight: 1, arbitrary: text })
}

const pathOf = ({ path, operation }: Route): fc.Arbitrary<string> => {
  const names = (operation.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name)
  return fc
    .tuple(...names.map((name) => pathValue(path, name)))
    .map((values) => path.replaceAll(/\{(\w+)\}/g, (_, name) => encoded(values[names.indexOf(name)]!)))
}

/** Leaves markers as they are. */
const encoded = (value: string): string => (value.startsWith('@') ? value : encodeURIComponent(value.toWellFormed()))

const withQuery = (path: string, query: readonly (readonly [string, string])[]): string =>
  query.length === 0 ? path : `${path}?${query.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&')}`

function validRequests(route: Route, body: fc.Arbitrary<Json> | undefined): fc.Arbitrary<PlannedRequest> {
  return fc
    .record({
      path: pathOf(route),
      query: chosen(parametersIn(route, 'query'), route.schemas),
      headers: chosen(parametersIn(route, 'header'), route.schemas),
      body: body ?? fc.constant(undefined),
    })
    .map(({ path, query, headers, body: value }) => ({
      route: nameOf(route),
      method: route.method,
      target: withQuery(path, query),
      headers: [...headers, ...(route.path === '/mcp' ? MCP_HEADERS : [])],
      body: value === undefined ? undefined : JSON.stringify(value),
    }))
}

const MCP_HEADERS = [
  ['Content-Type', 'application/json'],
  ['Accept', 'application/json, text/event-stream'],
] as const

/** Values of headers without control characters, which would make another request of it. */
const headerText: fc.Arbitrary<string> = fc.constantFrom(
  ...['', '*', '0', '-1', 'null', '{}', 'x'.repeat(5_000), 'text/event-stream', '"a"', ', ,', '%00', '=', 'bytes=9-'],
)

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

function nearlyValid(
  route: Route,
  valid: fc.Arbitrary<PlannedRequest>,
  body: fc.Arbitrary<Json> | undefined,
): fc.Arbitrary<PlannedRequest> {
  const parameterNames = [...parametersIn(route, 'query'), ...parametersIn(route, 'header')].map(({ name }) => name)
  const nameAndValue = fc.tuple(fc.constantFrom(...parameterNames, 'no_such'), odd.map(asText))
  const others = fc.oneof(
    { weight: 3, arbitrary: nameAndValue.map(addQuery) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...HEADERS), headerText).map(addHeader) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...METHODS).map((method) => (request: PlannedRequest) => ({ ...request, method })),
    },
  )
  const changed = fc.tuple(valid, others).map(([request, change]) => change(request))
  if (body === undefined) return changed
  const harmed = fc
    .tuple(valid, damaged(body))
    .map(([request, value]) => ({ ...request, body: JSON.stringify(value ?? null) }))
  return fc.oneof({ weight: 3, arbitrary: harmed }, { weight: 1, arbitrary: changed })
}

const HEADERS = [
  ...['Content-Type', 'Accept', 'Authorization', 'X-Trace-ID', 'Idempotency-Key', 'If-None-Match', 'X-Service-Owner'],
  ...[
    'Last-Event-ID',
    'Range',
    'Mcp-Method',
    'MCP-Protocol-Version',
    'Mcp-Name',
    'Accept-Encoding',
    'Expect',
    'Cookie',
  ],
  ...['Content-Encoding', 'Forwarded', 'X-HTTP-Method-Override', 'traceparent', 'Upgrade', 'Sec-Fetch-Site'],
]

const addQuery =
  ([name, value]: [string, string]) =>
  (request: PlannedRequest): PlannedRequest => {
    const separator = request.target.includes('?') ? '&' : '?'
    return { ...request, target: `${request.target}${separator}${encoded(name)}=${encoded(value)}` }
  }

const addHeader =
  (header: [string, string]) =>
  (request: PlannedRequest): PlannedRequest => ({ ...request, headers: [...request.headers, header] })

/** Depth of nesting beyond every limit. */
const DEEP = 100_000

const hostileBodies: readonly (string | Uint8Array)[] = [
  '',
  ' ',
  'null',
  '[]',
  '"text"',
  '{',
  '{"tasks":',
  '{"tasks": [}',
  '{"a":1}{"a":2}',
  '\ufeff{}',
  `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`,
  `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`,
  `{"tasks":[{"id":"a","type":"noop","params":${'[['.repeat(500)}${']]'.repeat(500)}}]}`,
  `{"tasks":[${Array.from({ length: 300 }, (_, i) => `{"id":"m${i}","type":"noop"}`).join()}],"scope":"graph"}`,
  `{"tasks":[{"id":"a","type":"noop","depends_on":[${Array.from({ length: 3_000 }, () => '"a"').join()}]}]}`,
  `{${Array.from({ length: 5_000 }, (_, i) => `"k${i}":${i}`).join()}}`,
  `{"tasks":${'9'.repeat(2_000)}}`,
  '{"tasks":[{"id":"a","id":"b","type":"noop","type":"sleep"}],"tasks":[]}',
  '{"__proto__":{"tasks":[{"id":"a","type":"noop"}]},"constructor":{"prototype":{}}}',
  '{"tasks":[{"id":"\\ud800","type":"noop"}]}',
  '{"tasks":[{"id":"a\\u0000","type":"noop"}]}',
  '{"execution":{"kind":"command","program":"/bin/true\\u0000"}}',
  '{"jsonrpc":"2.0","id":1,"method":"initialize"}',
  '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]',
  '{"jsonrpc":"2.0","id":{},"method":{}}',
  `"${'x'.repeat(1 << 20)}"`,
  'a=b&c=d',
  '\x1f\x8b\x08\x00',
  new Uint8Array([0xff, 0xfe, 0x7b, 0x00]),
  new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
  new Uint8Array(200).fill(0),
]

const hostileTargets: readonly string[] = [
  ...[
    '/',
    '//',
    '/.',
    '/..',
    '/tasks/..',
    '/tasks/../graphs',
    '/tasks/%2e%2e',
    '/tasks/%2F',
    '/tasks/a%2Fb',
    '/tasks/%00',
  ],
  ...['/tasks/%ff', '/tasks/%', '/tasks/%zz', '/graphs/@graph0/tasks/', '/graphs//tasks/a', '/tasks/a/b/c/d', '/TASKS'],
  ...[
    '/tasks?',
    '/tasks?&&=&',
    '/tasks?limit=1&limit=2',
    '/tasks?status=%ff',
    `/tasks/${'x'.repeat(3_000)}`,
    '/tasks/a;b',
  ],
  ...['/events?after=%00', '/graphs?label=%3D', '/tasks/..%5c..', '/assets/..%2fapp.js', '/assets/../../etc/hostname'],
  ...['/api/v1/tasks/@handle0/files/..%2f..%2frequest.json', '/api/v1/tasks/@handle0/files//etc/hostname'],
  ...['/api/v1/tasks/@handle0/files/%2e%2e/request.json', '/api/v1/tasks/@handle0/files/', '/api/v1/tasks/..', '/api'],
  ...[
    '/api/v1/tasks/%2e%2e/kill',
    '/api/v1/tasks?cursor=1e99',
    '/api/v1/tasks/a%0d%0aX-A:%20b',
    '/mcp/../tasks',
    '/\\',
  ],
  ...['/tasks/__proto__', '/tasks/constructor', '/graphs/toString', '/api/v1/tasks/__proto__', '/tasks/%F0%9F%98%80'],
]

const hostileHeaders: readonly (readonly [string, string])[] = [
  ['Host', 'evil.example.com'],
  ['Host', ''],
  ['Origin', 'http://evil.example.com'],
  ['Origin', 'null'],
  ['Sec-Fetch-Site', 'cross-site'],
  ['Authorization', 'Bearer '],
  ['Authorization', `Bearer ${'x'.repeat(4_000)}`],
  ['Content-Type', 'multipart/form-data; boundary=x'],
  ['Content-Type', 'application/x-www-form-urlencoded'],
  ['Content-Encoding', 'gzip'],
  ['Expect', '100-continue'],
  ['X-Trace-ID', 'x'.repeat(200)],
  ['MCP-Protocol-Version', '1999-01-01'],
  ['Mcp-Method', 'tools/call'],
  ['Range', `bytes=${'0-1,'.repeat(500)}`],
  ['Connection', 'Upgrade'],
  ['Cookie', `a=${'b'.repeat(6_000)}`],
]

/** The request with something in it that no client would send. */
function hostile(request: PlannedRequest): fc.Arbitrary<PlannedRequest> {
  const bodies = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...hostileBodies) },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 40 }) },
  )
  return fc.oneof(
    { weight: 3, arbitrary: bodies.map((body) => ({ ...request, method: withBody(request.method), body })) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(...hostileTargets).map((target) => ({ ...request, route: undefined, target })),
    },
    { weight: 2, arbitrary: fc.constantFrom(...hostileHeaders).map((header) => addHeader([...header])(request)) },
    { weight: 1, arbitrary: fc.nat(400).map((at) => cutBody(request, at)) },
  )
}

const withBody = (method: string): string => (method === 'GET' ? 'POST' : method)

/** The beginning of the body, as if the caller had been killed. */
const cutBody = (request: PlannedRequest, at: number): PlannedRequest =>
  typeof request.body === 'string' ? { ...request, body: request.body.slice(0, at) } : request
