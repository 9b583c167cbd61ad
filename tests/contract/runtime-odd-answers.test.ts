/** Goal: whatever a service at --runtime-url answers, a runtime task ends, with an error that names what is wrong. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { startControl } from '../support/control.ts'

setDefaultTimeout(60_000)

/** A service that takes every task and gives `status` for it. */
const runtimeThatSays = (status: object) => runtimeThatAnswers(() => status)

/** A service that takes every task and asks `answer` for each status. Nothing is queued there. */
function runtimeThatAnswers(answer: () => object) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ method, url }) => {
      if (method === 'POST') return Response.json({}, { status: 202 })
      return Response.json(new URL(url).pathname === '/api/v1/tasks' ? [] : answer())
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

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

test('a service that answers held requests at once is asked a few times a second', async () => {
  const asked: number[] = []
  await using runtime = runtimeThatAnswers(() => {
    asked.push(performance.now())
    return { status: asked.length < 6 ? 'running' : 'success' }
  })
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  expect((await control.run({ type: 'runtime', params: { program: '/bin/true' } })).status).toBe('success')
  const pauses = asked.slice(1).map((at, i) => at - asked[i]!)
  expect(Math.min(...pauses)).toBeGreaterThan(150)
})
