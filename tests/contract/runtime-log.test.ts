/** What the runtime logs: JSON lines, trace ids, no secrets. Source: spec, Events; contract 0 and 1 (X-Trace-ID). */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, script } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--log-level', 'debug'] })
})
afterAll(() => runtime.dispose())

const linesOf = (runtime: Runtime, trace: string) => runtime.log.filter(({ trace_id }) => trace_id === trace)

describe('X-Trace-ID', () => {
  test('is included as trace_id in the lines that a request and its task cause', async () => {
    const response = await runtime.post({ task_id: 'traced', ...script('exit 3') }, { 'X-Trace-ID': 'my-trace-1' })
    expect(response.status).toBe(200)
    await runtime.ended('traced')
    const lines = await until(
      () => linesOf(runtime, 'my-trace-1'),
      (found) => found.some(({ status }) => status === 'failed'),
    )
    for (const line of lines.filter(({ task_id }) => task_id !== undefined)) expect(line.task_id).toBe('traced')
    expect(runtime.log.filter(({ task_id }) => task_id === 'traced').length).toBeGreaterThanOrEqual(2)
  })

  test('is generated where there is none, and no two requests share it', async () => {
    const ids = [await runtime.submit(command('/bin/true')), await runtime.submit(command('/bin/true'))]
    const traceOf = (id: string) =>
      until(
        () => runtime.log.find(({ task_id }) => task_id === id)?.trace_id,
        (trace) => typeof trace === 'string' && trace !== '',
      )
    expect(await traceOf(ids[0]!)).not.toBe(await traceOf(ids[1]!))
    for (const id of ids) await runtime.ended(id)
  })

  test('of a refused kill is logged, too', async () => {
    await runtime.kill('nobody', { 'X-Trace-ID': 'lost-kill' })
    await until(
      () => linesOf(runtime, 'lost-kill').length,
      (count) => count > 0,
    )
  })
})

test('the log is JSON lines with time, level and msg', async () => {
  const before = runtime.log.length
  await runtime.run(command('/bin/true'))
  await runtime.run(command('/no/such/program'))
  await runtime.fetch('/nowhere')
  await until(
    () => runtime.log.length,
    (length) => length > before + 4,
  )
  for (const line of runtime.log) {
    expect([typeof line.time, typeof line.level, typeof line.msg]).toEqual(['string', 'string', 'string'])
    expect(Number.isNaN(Date.parse(String(line.time)))).toBe(false)
  }
})

test('values of the environment, arguments and scripts are in no log line and no event', async () => {
  const env = { API_KEY: 'sesame-env' }
  const bodies = [
    { execution: { kind: 'command', program: '/bin/echo', args: ['sesame-arg'], env } },
    { execution: { kind: 'command', program: '/no/such/program', args: ['sesame-arg'], env } },
    { execution: { kind: 'script', script: 'echo sesame-script; exit 3', env } },
    { execution: { kind: 'script', script: 'sesame-script', interpreter: ['/no/such/interpreter'], env } },
    { ...script('sleep 600 # sesame-script'), limits: { wall_time_ms: 50 }, sandbox: { profile: 'linux_sandbox' } },
  ]
  for (const body of bodies) {
    const { task_id } = await runtime.run(body)
    await until(() => runtime.log.some((line) => line.task_id === task_id && line.status !== undefined))
    expect(JSON.stringify(await runtime.events(task_id))).not.toContain('sesame')
  }
  await runtime.post({ execution: { kind: 'command', program: '', env } })
  await runtime.post({ execution: { kind: 'command', program: '/bin/true', env: { 'A=sesame-key': 'sesame-env' } } })
  expect(JSON.stringify(runtime.log)).not.toContain('sesame-env')
  expect(JSON.stringify(runtime.log)).not.toMatch(/sesame-(arg|script)/)
  for (const path of ['/metrics', '/api/v1/tasks?limit=100', '/api/v1/runtime/resources']) {
    expect(await (await runtime.fetch(path)).text()).not.toContain('sesame-env')
  }
})

test('values of the environment are on no command line of the launcher, which everybody may read', async () => {
  await using runtime = await startRuntime()
  const execution = { kind: 'script', script: 'echo ready; sleep 600', env: { API_KEY: 'sesame-env' } }
  const id = await runtime.submit({ execution })
  await runtime.printed(id)
  const { shim_pid } = await runtime.reached(id, 'running')
  const cmdline = readFileSync(`/proc/${shim_pid}/cmdline`, 'utf8')
  expect(cmdline).not.toBe('')
  expect(cmdline).not.toContain('sesame')
})
