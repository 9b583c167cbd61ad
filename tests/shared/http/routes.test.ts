/**
 * Goal: requests get the same answers in one pass as from Elysia's own composition of the same routes.
 * Method: each route is asked of a server that listens, and of the app itself, which composes its handlers by Elysia.
 */
import { afterAll, expect, test } from 'bun:test'
import type { AnyElysia } from 'elysia'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { createGuard } from '../../../shared/http/guard.ts'
import { anyText, described, repeatable, wholeNumber } from '../../../shared/http/openapi/route.ts'
import { routesInOnePass } from '../../../shared/http/routes.ts'
import { httpService, refuseOtherMethods, traceIdOf } from '../../../shared/http/service.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { servedApp } from '../../support/served-app.ts'

const route = { section: 'Tests', summary: 'Answer', answers: {} }
const refusal = () => new ServiceError(409, 'refused', { headers: { 'retry-after': '1' } })
const later = <T>(value: T): Promise<T> => Bun.sleep(1).then(() => value)

const app: AnyElysia = httpService({
  log: silentLog(),
  guard: createGuard({ token: undefined, allowedHosts: [], listeningHost: '127.0.0.1' }),
  errorBody: (error) => ({ error: error.message }),
  maxBodyBytes: 1_000,
  unknownFields: 'refuse',
})
app
  .onBeforeHandle(({ request, set }) => {
    set.headers['x-hook'] = 'first'
    const step = request.headers.get('x-step')
    if (step === 'answer') return 'of the hook'
    if (step === 'answer later') return later({ of: 'the hook' })
    if (step === 'refuse later') return later(undefined).then(() => Promise.reject(refusal()))
    return step === 'go on later' ? later(undefined) : undefined
  })
  .onBeforeHandle(({ set }) => {
    set.headers['x-hook'] += ', second'
  })
const get = (path: string, handler: (context: never) => unknown) => app.get(path, handler as never, described(route))
get('/text', () => '{"a":"ä"}')
get('/text/later', () => later('{"a":"ä"}'))
get('/value', () => ({ a: [1, null, 'ä'] }))
get('/value/later', async () => later({ a: 1 }))
get('/number', () => 7)
get('/nothing', ({ set }: { set: { status: number; headers: Record<string, string> } }) => {
  set.status = 204
  delete set.headers['content-type']
})
get('/accepted', ({ set }: { set: { status: number; headers: Record<string, string> } }) => {
  set.status = 202
  set.headers['X-More'] = 'more'
  return '{}'
})
get('/plain', ({ set }: { set: { headers: Record<string, string> } }) => {
  set.headers['content-type'] = 'text/plain'
  return 'plain'
})
get('/response', () => new Response('teapot', { status: 418, headers: { 'x-own': 'own' } }))
get('/response/later', () => later(new Response('teapot', { status: 418 })))
get('/refused', () => {
  throw refusal()
})
get('/refused/later', () => later(undefined).then(() => Promise.reject(refusal())))
for (const status of [429, 503]) {
  get(`/refused/${status}`, () => {
    throw new ServiceError(status, 'refused')
  })
}
get('/refused/itself', () => {
  throw new ServiceError(503, 'refused', { headers: { 'retry-after': '9' } })
})
get('/defect', () => {
  throw new TypeError('a defect')
})
get('/of/:id/and/:other', ({ params: { id, other } }: { params: Record<string, string> }) => `${id} ${other}`)
get('/trace', ({ set }: { set: { headers: Record<string, string> } }) => JSON.stringify(traceIdOf(set)))
const query = { wait_ms: wholeNumber(0, 10, 'A number.'), text: anyText('A text.') }
app.get('/query', ({ query }) => JSON.stringify(query), described({ ...route, query }))
app.get(
  '/repeated',
  ({ query }) => JSON.stringify(query),
  described({ ...route, query: { state: repeatable('A state.') } }),
)
app.post('/body', async ({ request }) => ({ length: (await request.bytes()).length }), described(route))
refuseOtherMethods(app)

const server = await servedApp(app)
afterAll(() => server.stop(0))

interface Asked extends RequestInit {
  readonly path: string
}

const gets: Asked[] = app.routes
  .filter(({ method }) => method === 'GET')
  .map(({ path }) => ({ path: path.replace(':id', 'a%2Fb').replace(':other', '%C3%A4') }))
const steps = ['answer', 'answer later', 'refuse later', 'go on later']

const ASKED: readonly Asked[] = [
  ...gets,
  ...gets.flatMap(({ path }) => steps.map((step) => ({ path, headers: { 'x-step': step } }))),
  ...['wait_ms=1', 'wait_ms', 'text=%C3%A4+b&wait_ms=2', 'text=%zz', 'wait_ms=1&wait_ms=2', 'other=1', ''].map(
    (query) => ({ path: `/query?${query}` }),
  ),
  ...['state=a&state=b', 'state=a,b', 'state=a'].map((query) => ({ path: `/repeated?${query}` })),
  { path: '/text?other=1' },
  { path: '/text', method: 'HEAD' },
  { path: '/text', method: 'PUT' },
  { path: '/nowhere' },
  { path: '/text', headers: { origin: 'http://evil.example' } },
  { path: '/of/%zz/and/b' },
  { path: '/body', method: 'POST', body: 'four' },
]

/** What a caller sees, but for headers of the connection. */
async function seen(answer: Response) {
  const headers = new Headers(answer.headers)
  for (const name of ['date', 'content-length', 'connection']) headers.delete(name)
  return { status: answer.status, headers: [...headers].sort(), body: await answer.text() }
}

test.each(ASKED.map((asked) => [JSON.stringify(asked), asked] as const))(
  '%s',
  async (_name, { path, headers, ...rest }) => {
    const init = { ...rest, headers: { host: '127.0.0.1', 'x-trace-id': 'trace', ...headers } }
    const composed = await app.handle(new Request(`${server.url}${path}`, init))
    expect(await seen(await fetch(`${server.url}${path}`, init))).toEqual(await seen(composed))
  },
)

test('all routes are answered in one pass, but for those with parameters that may be repeated', () => {
  const answered = Object.entries(routesInOnePass(app)).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  )
  const declared = app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`)
  expect(answered.sort()).toEqual(declared.filter((name) => name !== 'GET /repeated').sort())
})

test.each([
  ['429', '5'],
  ['503', '1'],
  ['itself', '9'],
])('/refused/%s says when to ask again', async (name, seconds) => {
  expect((await fetch(`${server.url}/refused/${name}`)).headers.get('retry-after')).toBe(seconds)
})

test('what a handler returns is answered in the same turn of the event loop', () => {
  const { '/text': text, '/text/later': later } = routesInOnePass(app)
  const request = () => Object.assign(new Request(`${server.url}/text`), { params: {} }) as never
  expect(text!.GET!(request())).toBeInstanceOf(Response)
  expect(later!.GET!(request())).toBeInstanceOf(Promise)
})
