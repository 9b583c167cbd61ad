/** Goal: whatever a service at --runtime-url answers, a runtime task ends, with an error that names what is wrong. */
import { expect, test } from 'bun:test'
import type { RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { type Control, startControl } from '../support/control.ts'

/** A service that takes every task and gives `status` for it. */
const runtimeThatSays = (status: object) => runtimeThatAnswers(() => status)

/** A service that takes every task and asks `answer` for each status and more. Nothing is queued there. */
function runtimeThatAnswers(answer: (path: string) => object) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ method, url }) => {
      if (method === 'POST') return Response.json({}, { status: 202 })
      const { pathname } = new URL(url)
      return Response.json(pathname === '/api/v1/tasks' ? [] : answer(pathname))
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

/** A service that answers each request with `answer`, and what it was asked. */
function serviceThatAnswers(answer: (path: string, search: string) => Response) {
  const asked: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ method, url }) {
      const { pathname, search } = new URL(url)
      asked.push(`${method} ${pathname}`)
      return answer(pathname, search)
    },
  })
  return { asked, url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

const listedIn = async (control: Control) =>
  ((await (await control.fetch('/runtimes')).json()) as RuntimesResponse).runtimes

const wrongTypes = { error: { code: 5, message: {} }, stdout: 5, stderr: [1], exit_code: 'x' }

test.each([
  ['fields of wrong types', { status: 'failed', ...wrongTypes }, 'stdout: expected string, got number'],
  [
    'an unknown status',
    { status: 'exploded' },
    'status: expected one of accepted, running, success, failed, cancelled',
  ],
  ['no status', {}, 'got undefined'],
])('a status with %s is a failure of the service', async (_, status, fault) => {
  await using runtime = runtimeThatSays(status)
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  const task = await control.run({ type: 'runtime', params: { program: '/bin/true' }, timeout: 10_000 })
  expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'external_failure', source: 'runtime' } } })
  expect(task.error).toContain(`the runtime service at ${runtime.url} answered for task `)
  expect(task.error).toContain(fault)
})

test.each([302, 307])('a redirect (%d) is an answer that names where it leads, and is not followed', async (status) => {
  await using other = serviceThatAnswers(() => Response.json({}))
  await using runtime = serviceThatAnswers(
    (path) => new Response(null, { status, headers: { location: other.url + path } }),
  )
  await using control = await startControl({ flags: ['--runtime-url', `moved=${runtime.url}`] })
  const { error } = await control.run({ type: 'runtime', params: { program: '/bin/true' } })
  const hint = 'which is not followed (set SERVICE_RUNTIME_URL to where it leads)'
  expect(error).toContain(`answered ${status}: a redirect to "${other.url}/api/v1/tasks", ${hint}`)
  expect(await listedIn(control)).toMatchObject([{ state: 'away', reason: expect.stringContaining(hint) }])
  expect(other.asked).toEqual([])
})

test('a refused token is told with the variable that has it', async () => {
  await using runtime = serviceThatAnswers(() => new Response(null, { status: 401 }))
  await using control = await startControl({ flags: ['--runtime-url', `locked=${runtime.url}`] })
  expect(await listedIn(control)).toMatchObject([
    { reason: `GET ${runtime.url}/api/v1/runtime/resources answered 401 (set SERVICE_RUNTIME_TOKEN)` },
  ])
  const { error } = await control.run({ type: 'runtime', params: { program: '/bin/true' } })
  expect(error).toBe(`runtime locked: POST ${runtime.url}/api/v1/tasks answered 401 (set SERVICE_RUNTIME_TOKEN)`)
})

test('the password in an address is in no error, list, result, log or file', async () => {
  await using runtime = runtimeThatSays({ status: 'success' })
  const withPassword = (url: string) => url.replace('//', '//ada:correct-horse@')
  await using control = await startControl({
    flags: [
      ...['--runtime-url', `here=${withPassword(runtime.url)}`, '--runtime-away-timeout', '100ms'],
      ...['--runtime-url', `gone=${withPassword('http://127.0.0.1:1')}`],
    ],
  })
  const runOn = (runtime: string) =>
    control.run({ type: 'runtime', params: { program: '/bin/true', placement: { runtime } } })
  const told: unknown[] = [await runOn('here'), await runOn('gone'), await listedIn(control)]
  expect(told).toMatchObject([{ status: 'success' }, { error: expect.stringContaining('at http://127.0.0.1:1: ') }, {}])
  await control.fetch('/runtimes/gone', { method: 'DELETE' })
  const kept = Bun.file(`${control.dataDir}/runtimes.json`) // not there with a database
  told.push(control.log, (await kept.exists()) ? await kept.json() : undefined)
  expect(JSON.stringify(told)).not.toContain('correct-horse')
})

/** Control pauses only after an answer that came at once, and a busy machine may hold one up. */
function usualPauseOf(asked: readonly number[]): number {
  const pauses = asked.slice(1).map((at, i) => at - asked[i]!)
  return pauses.toSorted((a, b) => a - b)[2]!
}

test('a service that answers held requests at once is asked a few times a second', async () => {
  const asked: number[] = []
  await using runtime = runtimeThatAnswers(() => {
    asked.push(performance.now())
    return { status: asked.length < 6 ? 'running' : 'success' }
  })
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  expect((await control.run({ type: 'runtime', params: { program: '/bin/true' } })).status).toBe('success')
  expect(usualPauseOf(asked)).toBeGreaterThan(150)
})

test.each([{ timeout: 60_000 }, { queue_timeout: 60_000 }])(
  'the same while a task with %j waits there',
  async (limit) => {
    const asked: number[] = []
    await using runtime = runtimeThatAnswers((path) => {
      if (path === '/healthz') return { clock: '1' }
      asked.push(performance.now())
      return { status: asked.length < 6 ? 'accepted' : 'success' }
    })
    await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
    expect((await control.run({ type: 'runtime', params: { program: '/bin/true' }, ...limit })).status).toBe('success')
    expect(usualPauseOf(asked)).toBeGreaterThan(150)
  },
)

test('a service whose proxy cuts long polls at once is asked a few times a second', async () => {
  const asked: number[] = []
  await using runtime = serviceThatAnswers((path, search) => {
    if (!/tasks.+/.test(path)) return Response.json({})
    asked.push(performance.now())
    if (asked.length > 12) return Response.json({ status: 'success' })
    return search === '?wait_ms=0' ? Response.json({ status: 'running' }) : new Response(null, { status: 504 })
  })
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  expect((await control.run({ type: 'runtime', params: { program: '/bin/true' } })).status).toBe('success')
  expect(asked.at(-1)! - asked[0]!).toBeGreaterThan(1_000)
  expect(control.log.filter(({ level }) => level === 'warn')).toEqual([])
})

test.each([500, 520, 524])(
  'a proxy that answers %d may have sent the submission on: the service is asked',
  async (status) => {
    await using runtime = serviceThatAnswers((path) => {
      if (path === '/api/v1/tasks') return new Response(null, { status })
      return Response.json({ status: 'success' })
    })
    await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
    const task = await control.run({ type: 'runtime', params: { program: '/bin/true' } })
    expect(task).toMatchObject({ status: 'success', attempt: 1 })
    expect(runtime.asked.filter((request) => request === 'POST /api/v1/tasks').length).toBe(1)
  },
)
