/**
 * Goal: a proxy that has lost its runtime service for a while, and answers itself, ends and doubles nothing.
 * Method: real services, and a proxy between them that loses the runtime service when a test wants it.
 */
import { expect, test } from 'bun:test'
import { startPair } from '../support/pair.ts'
import { StartedPool } from '../support/runtime-pool.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'

const AWAY = /^runtime \S+ is away since \S+ \(it answered \d+\)$/

/** A proxy before the service at `target()`, which need not be there yet. */
function losingProxy(target: () => string) {
  let loss = new AbortController()
  const proxy = {
    /** What it has answered itself. */
    own: [] as string[],
    /** Whether it loses the service after it has sent the next submission on, and before the answer. */
    isLostOnSubmission: false,
    ownStatus: 404,
    lose: () => loss.abort(),
    find: () => {
      loss = new AbortController()
    },
    url: '',
    [Symbol.asyncDispose]: () => server.stop(true),
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch({ url, method, headers, body }) {
      const { pathname, search } = new URL(url)
      const own = () => {
        proxy.own.push(`${method} ${pathname}`)
        return new Response('page not found\n', { status: proxy.ownStatus })
      }
      if (loss.signal.aborted) return own()
      const { signal } = loss
      try {
        const answer = await fetch(target() + pathname + search, { method, headers, body, signal })
        const bytes = await answer.bytes()
        if (method === 'POST' && pathname.endsWith('/tasks') && proxy.isLostOnSubmission) {
          loss.abort()
          return new Response(null, { status: 502 })
        }
        return new Response(bytes, { status: answer.status, headers: { 'content-type': 'application/json' } })
      } catch {
        return own()
      }
    },
  })
  proxy.url = `http://127.0.0.1:${server.port}`
  return proxy
}

async function startBehindProxy() {
  const proxy = losingProxy(() => pair.runtimeUrl)
  const pair = await startPair({ runtimeUrl: () => proxy.url })
  return {
    pair,
    proxy,
    [Symbol.asyncDispose]: () =>
      Promise.all([pair[Symbol.asyncDispose](), proxy[Symbol.asyncDispose]()]).then(() => {}),
  }
}

test.each([404, 401, 200])('its attempts go on while it answers %d', async (status) => {
  await using world = await startBehindProxy()
  const { pair, proxy } = world
  await pair.script('a', `echo; ${waitFor(pair.file('go'))}`)
  await pair.running('a')
  proxy.ownStatus = status
  proxy.lose()
  await until(
    () => pair.control.get('a'),
    ({ waiting }) => AWAY.test(waiting?.detail ?? ''),
  )
  await Bun.write(pair.file('go'), '')
  proxy.find()
  expect((await pair.ended('a')).here).toMatchObject({ status: 'success', attempt: 1 })
})

test('a cancel and a deletion are made true once it has found the service', async () => {
  await using world = await startBehindProxy()
  const { pair, proxy } = world
  await pair.script('ended', 'echo')
  await pair.ended('ended')
  await pair.script('a', 'echo; sleep 600')
  const { task_id } = await pair.running('a')
  proxy.lose()
  await pair.control.fetch('/tasks/ended', { method: 'DELETE' })
  await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })
  expect((await pair.control.ended('a')).status).toBe('cancelled')
  await until(
    () => proxy.own,
    (own) => own.some((request) => request.startsWith('DELETE')),
  )
  proxy.find()
  expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
  await until(
    () => pair.runtime.list(),
    (tasks) => tasks.length === 1,
  )
})

test('an attempt that may be there goes to no other runtime service', async () => {
  await using pool = new StartedPool({ b: {} })
  await pool.takePorts()
  await using proxy = losingProxy(() => pool.urlOf('a'))
  await pool.startRuntime('b')
  const there = await pool.startRuntime('a')
  const control = await pool.startControl(['--runtime-url', `a=${proxy.url}`])
  const script = `echo >> ${pool.file('ran')}`
  await control.fetch('/runtimes/b/drain', { method: 'POST' })
  proxy.isLostOnSubmission = true
  await control.submit([{ id: 'x', type: 'runtime.script', params: { script } }])
  await until(
    () => there.list(),
    (tasks) => tasks.length === 1,
  )
  await control.fetch('/runtimes/b/undrain', { method: 'POST' })
  await until(
    () => proxy.own,
    (own) => own.filter((request) => /^GET .*tasks\/x/.test(request)).length > 4,
  )
  proxy.isLostOnSubmission = false
  proxy.find()
  expect(await control.ended('x')).toMatchObject({ status: 'success', attempt: 1, placed_on: 'a' })
  expect(pool.lines('ran').length).toBe(1)
})
