/**
 * `limits.disk_bytes`: what a task may allocate in its workspace. Against the built service.
 * Source: docs/runtime.md, Limits.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script } from '../support/runtime-tasks.ts'

const MIB = 1024 * 1024
const limits = { disk_bytes: MIB }
const EXCEEDED = {
  status: 'failed',
  error: {
    code: 'resource_limit_exceeded',
    message: `task wrote more than disk_bytes (${MIB} bytes) to its workspace`,
    details: { disk_bytes: MIB },
  },
}

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime()
})
afterAll(() => runtime.dispose())

test('must be a whole number above 0', async () => {
  const response = await runtime.post({ ...script('true'), limits: { disk_bytes: 0 } })
  const [status, code, message] = await refused(response)
  expect([status, code, message]).toEqual([400, 'invalid_input', 'limits.disk_bytes must be greater than 0'])
})

describe.each(['process', 'linux_sandbox'] as const)('in profile %s', (profile) => {
  const inProfile = { limits, sandbox: { profile } }

  test('a task that writes more fails with it, also one that ended before it was noticed', async () => {
    expect(await runtime.runScript('cat /dev/zero > big; sleep 600', inProfile)).toMatchObject(EXCEEDED)
    expect(await runtime.runScript('head -c 2000000 /dev/zero > big', inProfile)).toMatchObject(EXCEEDED)
  })

  test('a task that stays below it succeeds, and its plan has the limit', async () => {
    const task = await runtime.runScript(
      'head -c 900000 /dev/zero > some; rm some; head -c 900000 /dev/zero > more',
      inProfile,
    )
    expect(task).toMatchObject({ status: 'success', execution_plan: { resource_enforcement: limits } })
  })
})

test('inputs do not count', async () => {
  const source = await runtime.runScript('head -c 3000000 /dev/zero > large', { outputs: ['large'] })
  const inputs = { 'in.bin': { task_id: source.task_id, file: 'large' } }
  const task = await runtime.runScript('head -c 500000 /dev/zero > own; wc -c < in.bin', { limits, inputs })
  expect(task).toMatchObject({ status: 'success', stdout: '3000000\n' })
})

test('--task-disk-bytes limits tasks that ask for nothing', async () => {
  await using limited = await startRuntime({ flags: ['--task-disk-bytes', String(MIB)] })
  expect(await limited.runScript('cat /dev/zero > big')).toMatchObject(EXCEEDED)
  const roomy = await limited.runScript('head -c 2000000 /dev/zero > big', { limits: { disk_bytes: 10 * MIB } })
  expect(roomy.status).toBe('success')
})
