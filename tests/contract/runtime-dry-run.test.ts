/**
 * Goal: a dry run of POST /api/v1/tasks answers what the submission would be answered, and keeps nothing.
 * Method: each body is checked first and submitted then; the two answers must agree.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { DryRunResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { command, refused, SLEEP } from '../support/runtime-tasks.ts'

const TRUE = command('/bin/true')
const LINUX = { sandbox: { profile: 'linux_sandbox' } }
const FLAGS = ['--disable-linux-sandbox', '--disable-cgroup', '--capacity-memory-bytes', '1000000000']

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: [...FLAGS, '--tenant-quota', 'small=slots:1,memory:1000'] })
})
afterAll(() => runtime.dispose())

const check = (service: Runtime, body: unknown, query = '?dry_run=true') =>
  service.fetch(`/api/v1/tasks${query}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

/** All that a service holds of tasks. */
async function held(service: Runtime) {
  const tasks = join(service.dataDir, 'tasks')
  return {
    directories: existsSync(tasks) ? readdirSync(tasks) : [],
    listed: await service.json('/api/v1/tasks?limit=1000'),
    resources: await service.resources(),
    counted: (await (await service.fetch('/metrics')).text())
      .split('\n')
      .filter((line) => line.startsWith('service_runtime_tasks')),
  }
}

describe('a body that would be accepted', () => {
  test.each([
    ['that asks for nothing', {}],
    ['with limits', { limits: { memory_bytes: 1e8, cpu_time_sec: 5 } }],
    ['that the host degrades', LINUX],
  ])('%s gets the plan of its task, and nothing is kept', async (_, more) => {
    const body = { ...TRUE, ...more }
    const before = await held(runtime)
    const response = await check(runtime, { ...body, task_id: 'asked' })
    expect(response.status).toBe(200)
    const { execution_plan, fits } = (await response.json()) as DryRunResponse
    expect(fits).toBe(true)
    expect(await held(runtime)).toEqual(before)
    expect((await runtime.fetch('/api/v1/tasks/asked')).status).toBe(404)
    expect((await runtime.run(body)).execution_plan).toEqual(execution_plan)
  })

  test('is submitted where dry_run is false', async () => {
    expect(await (await check(runtime, { ...TRUE, task_id: 'real' }, '?dry_run=false')).json()).toMatchObject({
      status: 'accepted',
    })
    expect((await runtime.ended('real')).status).toBe('success')
  })
})

describe('a body that would be refused gets the same refusal', () => {
  test.each([
    ['no JSON', '{'],
    ['an unknown field', { ...TRUE, sandbox: { profil: 'process' } }],
    ['a program with NUL', command('/bin/tr\0ue')],
    ['a strict task that the host cannot hold', { ...TRUE, ...LINUX, policy: { capability_mode: 'strict' } }],
    ['more than the capacity', { ...TRUE, limits: { memory_bytes: 2e9 } }],
    ['more than the quota', { ...TRUE, limits: { memory_bytes: 2000 }, control_context: { tenant: 'small' } }],
    ['a rootfs that is not there', { ...TRUE, sandbox: { rootfs: '/no/such/root' } }],
  ])('%s', async (_, body) => {
    const before = await held(runtime)
    const checked = await refused(await check(runtime, body))
    expect(await held(runtime)).toEqual(before)
    expect(checked).toEqual(await refused(await runtime.post(body)))
  })

  test('an id that is taken', async () => {
    await runtime.run({ ...TRUE, task_id: 'taken' })
    const body = { ...TRUE, task_id: 'taken' }
    expect((await refused(await check(runtime, body))).slice(0, 2)).toEqual([409, 'conflict'])
    expect(await refused(await check(runtime, body))).toEqual(await refused(await runtime.post(body)))
  })

  test('a queue that is full', async () => {
    await using busy = await startRuntime({ flags: [...FLAGS, '--max-running-tasks', '1', '--max-queued-tasks', '1'] })
    await busy.submit(SLEEP)
    expect((await check(busy, TRUE)).status).toBe(200)
    await busy.submit(SLEEP)
    const checked = await refused(await check(busy, TRUE))
    expect(checked.slice(0, 2)).toEqual([429, 'resource_limit_exceeded'])
    expect(checked).toEqual(await refused(await busy.post(TRUE)))
  })

  test('a data directory that is gone', async () => {
    await using lost = await startRuntime({ flags: FLAGS })
    renameSync(lost.dataDir, `${lost.dataDir}.away`)
    const checked = await refused(await check(lost, TRUE))
    expect(checked.slice(0, 2)).toEqual([503, 'unavailable'])
    expect(checked).toEqual(await refused(await lost.post(TRUE)))
    renameSync(`${lost.dataDir}.away`, lost.dataDir)
  })

  test('a value of dry_run that is none, and a parameter that there is not', async () => {
    for (const query of ['?dry_run=yes', '?dry-run=true']) {
      const [status, code, message] = await refused(await check(runtime, TRUE, query))
      expect([status, code]).toEqual([400, 'invalid_input'])
      expect(message).toContain('dry_run')
    }
  })
})

test('submit --dry-run prints the plan, or the refusal with exit code 1', async () => {
  const args = ['submit', '--server', runtime.url, '--dry-run', '--json']
  const accepted = await runRuntime([...args, JSON.stringify({ ...TRUE, task_id: 'by-command' })])
  expect(accepted.exitCode).toBe(0)
  expect(JSON.parse(accepted.stdout)).toMatchObject({ fits: true, execution_plan: { degraded: false } })
  const turnedDown = await runRuntime([...args, JSON.stringify({ ...TRUE, limits: { memory_bytes: 2e9 } })])
  expect(turnedDown.exitCode).toBe(1)
  expect(JSON.parse(turnedDown.stdout).error.code).toBe('insufficient_resources')
  expect((await runtime.fetch('/api/v1/tasks/by-command')).status).toBe(404)
})
