/** Goal: what a start leaves for later is there with the first request that needs it. */
import { expect, test } from 'bun:test'
import { createGuard } from '../../../shared/http/guard.ts'
import { httpService, refuseOtherMethods } from '../../../shared/http/service.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { servedApp } from '../../support/served-app.ts'

/** A service with the routes `GET /things/:id` and `GET /files/*`. */
async function listening(hostname: string) {
  const guard = createGuard({ token: undefined, allowedHosts: [], listeningHost: hostname })
  const errorBody = (error: Error) => ({ error: error.message })
  const app = httpService({ log: silentLog(), guard, errorBody, maxBodyBytes: 1024, unknownFields: 'refuse' })
  app.get('/things/:id', ({ params }) => params)
  app.get('/files/*', ({ params }) => params)
  refuseOtherMethods(app)
  const server = await servedApp(app, hostname)
  return { url: server.url, ofServer: app.server!.url.href, [Symbol.asyncDispose]: () => server.stop(0) }
}

test.each(['127.0.0.1', '0.0.0.0', 'localhost', '::1', '127.1'])(
  'the URL of %s is that of its server',
  async (host) => {
    await using service = await listening(host)
    expect(`${service.url}/`).toBe(service.ofServer)
  },
)

test.each([
  ['GET', '/nothing', 404, null],
  ['PUT', '/things/1', 405, 'GET, HEAD'],
  ['GET', '/files/a/b', 200, null],
])('the first request may be %s %s', async (method, path, status, allow) => {
  await using service = await listening('127.0.0.1')
  const ask = () => fetch(`${service.url}${path}`, { method })
  for (const answer of await Promise.all([ask(), ask()])) {
    expect(answer.status).toBe(status)
    expect(answer.headers.get('allow')).toBe(allow)
    expect(answer.headers.get('content-type')).toStartWith('application/json')
  }
})
