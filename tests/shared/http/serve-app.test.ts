/** Requests that come before a service has routes. Real sockets. */
import { expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { type HttpServer, listen } from '../../../shared/http/listen.ts'
import { serveApp } from '../../../shared/http/serve-app.ts'
import { StartProgress } from '../../../shared/process/start-progress.ts'
import { until } from '../../support/until.ts'

const appOf = () =>
  new Elysia()
    .get('/plain', ({ request }) => ({ search: new URL(request.url).search }))
    .get('/named/:id', ({ params }) => ({ params }))
    .all('/all', () => 'all')

/** The answers to requests that `server` has before `app` answers. */
async function answersOfStart(server: HttpServer, requests: readonly (readonly [method: string, path: string])[]) {
  const answers = requests.map(([method, path]) => fetch(server.url + path, { method }))
  await until(() => server.server.pendingRequests, requests.length)
  serveApp(appOf(), server)
  return Promise.all(answers)
}

test('requests that wait for the end of the start get the answers that later ones get', async () => {
  const server = await listen({ hostname: '127.0.0.1', port: 0 }, 'addr')
  try {
    const requests = [
      ['GET', '/plain'],
      ['GET', '/plain?a=1&b=x%20y'],
      ['HEAD', '/plain'],
      ['POST', '/plain'],
      ['GET', '/named/x'],
      ['GET', '/named/:id'],
      ['GET', '/all'],
      ['GET', '/constructor'],
    ] as const
    const told = async (response: Response) => [response.status, await response.text()]
    const early = await Promise.all((await answersOfStart(server, requests)).map(told))
    const late = await Promise.all(
      requests.map(async ([method, path]) => told(await fetch(server.url + path, { method }))),
    )
    expect(early).toEqual(late)
    expect(early.slice(0, 2)).toEqual([
      [200, '{"search":""}'],
      [200, '{"search":"?a=1&b=x%20y"}'],
    ])
  } finally {
    await server.stop(0)
  }
})

test('with a limit to its patience a service that starts answers 503, with its progress', async () => {
  const progress = new StartProgress()
  const server = await listen({ hostname: '127.0.0.1', port: 0 }, 'addr', 1, progress)
  progress.begin('reading the journal', 7)
  progress.count()
  try {
    const response = await fetch(`${server.url}/plain`)
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
      ...[503, '1', { error: 'starting', phase: 'reading the journal', records: 1, of: 7 }],
    ])
  } finally {
    await server.stop(0)
  }
})
