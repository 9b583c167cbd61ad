/**
 * `limits.disk_bytes`: what a task may allocate in its workspace. Against the built service.
 * Source: docs/runtime.md, Limits.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'

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

const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

test.skipIf(missingSandbox !== undefined)(`a removed file counts while the task has it open${why}`, async () => {
  const hidden = 'exec 3> big; rm big; head -c 2000000 /dev/zero >&3; exec sleep 600'
  expect(await runtime.runScript(hidden, { limits, sandbox: { profile: 'linux_sandbox' } })).toMatchObject(EXCEEDED)
})

test('directories that are too deep to be counted are an error of their own', async () => {
  const deep = await runtime.runScript(`mkdir -p $(printf 'd/%.0s' $(seq 300))`, { limits: { disk_bytes: 64 * MIB } })
  const message = 'workspace has directories more than 256 deep, which cannot be counted for disk_bytes'
  expect(deep).toMatchObject({ status: 'failed', error: { code: 'resource_limit_exceeded', message } })
  const below = await runtime.post({ ...script('true'), limits, sandbox: { workspace_subdir: 'd/'.repeat(300) } })
  expect(await refused(below)).toMatchObject([
    400,
    'invalid_input',
    'sandbox.workspace_subdir has 300 names (at most 128)',
  ])
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
