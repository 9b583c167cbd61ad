/**
 * `taskmill-runtime health`, which the health check of the container image runs: its exit code is what counts.
 * The service that is not ready is a stand-in, as a real one cannot be made so without filling a disk.
 */
import { expect, test } from 'bun:test'
import { builtProgram } from '../../scripts/build.ts'
import type { SubmitTaskResponse } from '../../shared/contract/runtime.ts'
import { freePort } from '../support/free-port.ts'
import { startRuntime } from '../support/runtime.ts'
import { testEnvironment } from '../support/service.ts'
import { startTokenRuntime } from '../support/token-runtime.ts'
import { until } from '../support/until.ts'

async function health(url: string) {
  const child = Bun.spawn([await builtProgram('taskmill-runtime'), 'health'], {
    env: testEnvironment({ SERVICE_RUNTIME_URL: url }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('a ready service: exit code 0 and its answer, without the token that everything else needs', async () => {
  await using runtime = await startTokenRuntime()
  const { exitCode, stdout, stderr } = await health(runtime.url)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ status: 'ready', version: expect.any(String) })
})

test('a service that answers 503: exit code 1, its answer, and why on standard error', async () => {
  const answer = { error: { code: 'unavailable', message: 'the data directory takes no write', details: null } }
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => Response.json(answer, { status: new URL(url).pathname === '/readyz' ? 503 : 200 }),
  })
  const { exitCode, stdout, stderr } = await health(`http://127.0.0.1:${server.port}`)
  expect({ exitCode, body: JSON.parse(stdout) }).toEqual({ exitCode: 1, body: answer })
  expect(stderr).toBe('taskmill-runtime: the data directory takes no write\n')
})

test('nobody there: exit code 1, and what to do', async () => {
  const { exitCode, stdout, stderr } = await health(`http://127.0.0.1:${await freePort()}`)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toContain('connection refused (is it running? start it with taskmill-runtime serve,')
})

test('no request that comes while a service starts is refused', async () => {
  const port = await freePort()
  const starting = startRuntime({ flags: ['--listen-addr', `127.0.0.1:${port}`] })
  const body = JSON.stringify({ execution: { kind: 'script', script: 'echo early' } })
  const submit = () => fetch(`http://127.0.0.1:${port}/api/v1/tasks`, { method: 'POST', body }).catch(() => undefined)
  const answer = await until(submit, (response) => response !== undefined)
  expect(answer?.status).toBe(200)
  const { task_id } = (await answer!.json()) as SubmitTaskResponse
  await using runtime = await starting
  expect(await runtime.ended(task_id)).toMatchObject({ status: 'success', stdout: 'early\n' })
})
