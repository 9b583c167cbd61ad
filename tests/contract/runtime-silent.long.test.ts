/**
 * A runtime service that accepts connections and never answers, because it is stopped with a signal: callers are told, its
 * attempts fail in time, and nothing that was cancelled meanwhile runs once it goes on.
 */
import { expect, test } from 'bun:test'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { startControl } from '../support/control.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { until } from '../support/until.ts'

const AWAY = /^runtime default is away since \S+ \(no answer( within \S+ s)?\)/

/** A long poll that was sent before the stop fails after 35 s. */
const endedSoon = (pair: Pair, id: string) =>
  until(
    () => pair.control.get(id),
    ({ status }) => isTerminal(status),
    { patienceMs: 25_000 },
  )

/** A stopped runtime service with the submission of `late` in a socket: its task has no other place to wait in. */
async function submittedToStopped(): Promise<Pair> {
  const pair = await startPair()
  await pair.script('first', 'true')
  await pair.ended('first')
  pair.runtime.process.kill('SIGSTOP')
  await pair.script('late', `echo >> ${pair.file('ran')}; sleep 600`)
  await until(
    () => pair.control.get('late'),
    ({ handle_id, waiting }) => handle_id !== undefined && AWAY.test(waiting?.detail ?? ''),
  )
  return pair
}

test('a task that is cancelled while its submission waits there never runs', async () => {
  await using pair = await submittedToStopped()
  await pair.control.fetch('/tasks/late/cancel', { method: 'POST' })
  expect((await pair.control.ended('late')).status).toBe('cancelled')
  pair.runtime.process.kill('SIGCONT')
  await until(
    () => pair.runtime.log,
    (log) => log.some(({ status, path }) => status === 404 && String(path).includes('late')), // the kill has come
  )
  await pair.script('last', 'true') // the submission comes before this one
  await pair.ended('last')
  expect(pair.lines('ran')).toEqual([])
  expect((await pair.runtime.list()).map(({ task_id }) => task_id.split('-')[0])).toEqual(['first', 'last'])
})

test('the same when control is killed before and after the cancel', async () => {
  await using pair = await submittedToStopped()
  await pair.stopControl('SIGKILL')
  await pair.startControl()
  await pair.control.fetch('/tasks/late/cancel', { method: 'POST' })
  expect((await pair.control.ended('late')).status).toBe('cancelled')
  await pair.stopControl('SIGKILL')
  pair.runtime.process.kill('SIGCONT')
  await pair.startControl()
  await until(
    () => pair.runtime.log,
    (log) => log.some(({ status, path }) => status === 404 && String(path).includes('late')),
  )
  await pair.script('last', 'true')
  await pair.ended('last')
  expect(pair.lines('ran')).toEqual([])
})

test('its attempts say so, and fail after --runtime-away-timeout since its last answer', async () => {
  await using pair = await startPair({ controlFlags: ['--runtime-away-timeout', '3s'] })
  await pair.script('a', 'echo; sleep 600')
  const { task_id } = await pair.running('a')
  pair.runtime.process.kill('SIGSTOP')
  const waits = await until(
    () => pair.control.get('a'),
    ({ waiting }) => waiting !== undefined && AWAY.test(waiting.detail ?? ''),
  )
  expect(waits.status).toBe('running')
  const { runtimes } = (await (await pair.control.fetch('/runtimes')).json()) as { runtimes: { state: string }[] }
  expect(runtimes).toMatchObject([{ state: 'away' }])
  const failed = await endedSoon(pair, 'a')
  expect(failed).toMatchObject({
    status: 'failed',
    error: expect.stringMatching(/^lost touch with the runtime service for 3/),
  })
  pair.runtime.process.kill('SIGCONT')
  expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
})

test('a cancel of its task ends, and is made true once it goes on', async () => {
  await using pair = await startPair()
  await pair.script('a', 'echo; sleep 600')
  const { task_id } = await pair.running('a')
  pair.runtime.process.kill('SIGSTOP')
  await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })
  expect((await endedSoon(pair, 'a')).status).toBe('cancelled')
  pair.runtime.process.kill('SIGCONT')
  expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
})

test('a short stop harms nothing', async () => {
  await using pair = await startPair({ controlFlags: ['--runtime-away-timeout', '10m'] })
  await pair.script('a', 'echo; sleep 1; echo done')
  await pair.running('a')
  pair.runtime.process.kill('SIGSTOP')
  await until(
    () => pair.control.get('a'),
    ({ waiting }) => AWAY.test(waiting?.detail ?? ''),
  )
  pair.runtime.process.kill('SIGCONT')
  const { here } = await pair.ended('a')
  expect(here).toMatchObject({ status: 'success', attempt: 1, result: { stdout: '\ndone\n' } })
})

test.each([
  ['says that it lives after 2.5 s, and holds its statuses', 2_500],
  ['says that it lives only once, and gives its statuses at once', 60_000],
])('a service that %s is there', async (_, laterMs) => {
  const beganAt = performance.now()
  const isOver = () => performance.now() - beganAt > 7_000
  const kills: string[] = []
  let pings = 0
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch({ method, url }) {
      const { pathname } = new URL(url)
      if (pathname.endsWith('/kill')) kills.push(pathname)
      if (method === 'POST') return Response.json({}, { status: 202 })
      if (pathname === '/healthz') await Bun.sleep(pings++ === 0 ? 0 : laterMs)
      else if (laterMs === 2_500) await until(isOver, (is) => is)
      return Response.json({ status: isOver() ? 'success' : 'running' })
    },
  })
  const flags = ['--runtime-url', server.url.href, '--runtime-away-timeout', '4s']
  await using control = await startControl({ flags })
  expect(await control.run({ type: 'runtime', params: { program: '/bin/true' } })).toMatchObject({ status: 'success' })
  expect(kills).toEqual([])
})
