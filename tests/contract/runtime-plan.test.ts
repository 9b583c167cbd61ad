/**
 * What a task asks for and what a host has: adaptive does without and says so, strict refuses. Both hosts are made the
 * same by --disable-linux-sandbox and --disable-cgroup. Source: spec, SandboxPolicy, TaskPolicy, Errors B; contract 2.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, script } from '../support/runtime-tasks.ts'

const TRUE = command('/bin/true')
const WITHOUT = ['--disable-linux-sandbox', '--disable-cgroup']
const LINUX = { sandbox: { profile: 'linux_sandbox' } }
const PIDS = { limits: { pids_max: 5 } }
const mode = (capability_mode: string) => ({ policy: { capability_mode } })
const REQUIRED = { control_context: { requires_strict_sandbox: true } }

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: WITHOUT })
})
afterAll(() => runtime.dispose())

async function refusedAsUnsupported(service: Runtime, body: object): Promise<void> {
  const before = await service.resources()
  const [status, code, message] = await refused(await service.post({ task_id: 'unsupported', ...body }))
  expect([status, code]).toEqual([400, 'unsupported_capability'])
  expect(message).not.toBe('')
  expect(await service.resources()).toEqual(before)
  expect((await service.fetch('/api/v1/tasks/unsupported')).status).toBe(404)
  const tasks = join(service.dataDir, 'tasks')
  expect(existsSync(tasks) ? readdirSync(tasks) : []).not.toContain('unsupported')
}

/** A downgraded plan, its reasons and its event. */
async function expectDegraded(service: Runtime, task: TaskStatusResponse): Promise<void> {
  const plan = task.execution_plan
  expect(plan).toMatchObject({ capability_mode: 'adaptive', degraded: true })
  expect(plan.fallback_reasons.length).toBeGreaterThan(0)
  for (const reason of plan.fallback_reasons) expect(reason).not.toBe('')
  const types = await service.eventTypes(task.task_id)
  expect(types.indexOf('degraded')).toBe(types.indexOf('planned') + 1)
}

describe('a plan', () => {
  test('of a task that asks for nothing: profile process, nothing missing', async () => {
    const { execution_plan } = await runtime.run(TRUE)
    expect(execution_plan).toMatchObject({
      capability_mode: 'adaptive',
      requested_sandbox: { profile: 'process' },
      effective_sandbox: { profile: 'process' },
      ...{ degraded: false, fallback_reasons: [] },
    })
    expect(execution_plan.resource_enforcement).toEqual({
      wall_time_ms: 300_000,
      ...{ cpu_time_enforced: false, memory_enforced: false, pids_enforced: false },
      ...{ cgroup_enforced: false, oom_detection: false },
    })
    expect(execution_plan.capability_warnings).toBeArray()
  })

  test('says which limits hold', async () => {
    const limits = { wall_time_ms: 60_000, cpu_time_sec: 9, memory_bytes: 1 << 29, pids_max: 50 }
    const { execution_plan } = await runtime.run({ ...TRUE, limits })
    expect(execution_plan.resource_enforcement).toEqual({
      ...limits,
      ...{ cpu_time_enforced: true, memory_enforced: true, pids_enforced: false },
      ...{ cgroup_enforced: false, oom_detection: false },
    })
  })

  test('is resolved by submit, and stays as it was', async () => {
    const id = await runtime.submit({ ...script('true'), ...LINUX })
    const before = (await runtime.get(id)).execution_plan
    expect((await runtime.ended(id)).execution_plan).toEqual(before)
  })
})

describe('adaptive: an explicit downgrade that is reported', () => {
  test('linux_sandbox becomes process', async () => {
    for (const body of [
      { ...script('echo ran'), ...LINUX },
      { ...script('echo ran'), ...LINUX, ...mode('adaptive') },
    ]) {
      const task = await runtime.run(body)
      expect(task).toMatchObject({ status: 'success', stdout: 'ran\n' })
      await expectDegraded(runtime, task)
      expect(task.execution_plan).toMatchObject({
        requested_sandbox: { profile: 'linux_sandbox' },
        effective_sandbox: { profile: 'process' },
      })
    }
  })
})

describe('strict answers 400 unsupported_capability, and nothing is stored', () => {
  test.each([
    ['linux_sandbox', LINUX],
    ['pids_max', PIDS],
    ['both', { ...LINUX, ...PIDS }],
    ['chroot', { sandbox: { profile: 'linux_sandbox', chroot: true, rootfs: '/' } }],
  ])('%s', async (_, more) => {
    await refusedAsUnsupported(runtime, { ...TRUE, ...more, ...mode('strict') })
  })

  test('what the host does have is accepted, and the plan says strict', async () => {
    const limits = { cpu_time_sec: 5, memory_bytes: 1 << 29 }
    const task = await runtime.run({ ...TRUE, limits, ...mode('strict') })
    expect(task).toMatchObject({ status: 'success', execution_plan: { capability_mode: 'strict', degraded: false } })
    expect(await runtime.eventTypes(task.task_id)).not.toContain('degraded')
  })
})

describe('requires_strict_sandbox: a sandbox downgrade is a strict rejection', () => {
  test('whatever the capability mode', async () => {
    for (const policy of [{}, mode('adaptive'), mode('strict')]) {
      await refusedAsUnsupported(runtime, { ...TRUE, ...LINUX, ...policy, ...REQUIRED })
    }
  })

  test('without a downgrade of the sandbox it refuses nothing', async () => {
    expect((await runtime.run({ ...TRUE, ...REQUIRED })).status).toBe('success')
  })
})

describe("the server's default capability mode", () => {
  test('holds for tasks without a policy', async () => {
    await using strict = await startRuntime({ flags: [...WITHOUT, '--default-capability-mode', 'strict'] })
    await refusedAsUnsupported(strict, { ...TRUE, ...LINUX })
    await refusedAsUnsupported(strict, { ...TRUE, ...LINUX, policy: {} })
    expect((await strict.run(TRUE)).execution_plan.capability_mode).toBe('strict')
    const task = await strict.run({ ...TRUE, ...LINUX, ...mode('adaptive') })
    await expectDegraded(strict, task)
  })
})

test('what the host can do is what the plan says: linux_sandbox', async () => {
  await using host = await startRuntime()
  const { sandbox } = await host.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
  const strict = await host.post({ ...TRUE, ...LINUX, ...mode('strict') })
  expect(strict.status).toBe(sandbox.linux_sandbox ? 200 : 400)
  const { execution_plan } = await host.run({ ...TRUE, ...LINUX })
  expect(execution_plan.effective_sandbox.profile).toBe(sandbox.linux_sandbox ? 'linux_sandbox' : 'process')
  expect(execution_plan.degraded).toBe(!sandbox.linux_sandbox)
})
