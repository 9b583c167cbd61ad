/**
 * POST /api/v1/tasks of the runtime: what is accepted, what is refused and with which words. Against the built service.
 * Source: spec, Resources B and Errors B; contract 2 and 5, Values and Runtime.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SubmitTaskResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, SLEEP, script } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TRUE = command('/bin/true')
const LINUX = { profile: 'linux_sandbox' }

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--disable-linux-sandbox', '--disable-cgroup'] })
})
afterAll(() => runtime.dispose())

const taskDirs = () => {
  const tasks = join(runtime.dataDir, 'tasks')
  return existsSync(tasks) ? readdirSync(tasks).toSorted() : []
}

/** What the service holds: of a refused request nothing may be in it. */
const held = async () => ({
  directories: taskDirs(),
  listed: await runtime.json('/api/v1/tasks?limit=1000'),
  resources: await runtime.resources(),
})

/** Refuses `body` and looks whether it left anything behind. */
async function refusal(body: unknown): Promise<[status: number, code: string, message: string]> {
  const before = await held()
  const answer = await refused(await runtime.post(body))
  expect(await held()).toEqual(before)
  return answer
}

describe('a submit that succeeds', () => {
  test('answers 200 with task_id, handle_id equal to it, and status accepted', async () => {
    const response = await runtime.post({ task_id: 'answer', ...TRUE })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    expect(await response.json()).toEqual({ task_id: 'answer', handle_id: 'answer', status: 'accepted' })
    expect((await runtime.ended('answer')).status).toBe('success')
  })

  test('generates a UUID where task_id is left out', async () => {
    const answers: SubmitTaskResponse[] = []
    for (const task_id of [undefined, undefined, null]) {
      answers.push((await (await runtime.post({ ...TRUE, task_id })).json()) as SubmitTaskResponse)
    }
    for (const answer of answers) {
      expect(answer.task_id).toMatch(UUID)
      expect(answer).toEqual({ task_id: answer.task_id, handle_id: answer.task_id, status: 'accepted' })
    }
    expect(new Set(answers.map(({ task_id }) => task_id)).size).toBe(3)
    for (const { task_id } of answers) await runtime.ended(task_id) // "held" compares all tasks
  })

  test('persists the request and empty stdout and stderr logs', async () => {
    await using busy = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await busy.submit(SLEEP)
    const { artifacts } = await busy.get(await busy.submit(script('echo never')))
    expect(JSON.parse(readFileSync(artifacts.request_path, 'utf8'))).toMatchObject(script('echo never'))
    expect(readFileSync(artifacts.stdout_path, 'utf8')).toBe('')
    expect(readFileSync(artifacts.stderr_path, 'utf8')).toBe('')
    expect(existsSync(artifacts.result_path)).toBe(false)
  })

  test.each([
    ['fields of the caller', { ...TRUE, 'x-colour': 'red', sandbox: { x_shape: 'round' }, annotations: { a: 'b' } }],
    ['null in optional fields', { ...TRUE, limits: null, sandbox: null, policy: null, metadata: null }],
    [
      'null in optional fields of parts',
      {
        execution: { kind: 'command', program: '/bin/true', args: null, script: null, interpreter: null, env: null },
        limits: { wall_time_ms: null, cpu_time_sec: null, memory_bytes: null, pids_max: null, stdout_max_bytes: null },
        sandbox: { profile: null, workspace_subdir: null, rootfs: null, chroot: null, namespaces: null },
        policy: { capability_mode: null },
        control_context: { tenant: null, owner: null, requires_strict_sandbox: null, labels: null },
      },
    ],
    ['empty optional parts', { ...TRUE, limits: {}, sandbox: {}, policy: {}, control_context: {}, metadata: {} }],
  ])('%s change nothing', async (_, body) => {
    const task = await runtime.run(body)
    expect(task.status).toBe('success')
    expect(task.execution_plan).toMatchObject({
      capability_mode: 'adaptive',
      effective_sandbox: { profile: 'process' },
    })
  })

  test('keeps what only describes the caller in request.json, and it changes nothing', async () => {
    const control_context = {
      control_plane_mode: 'remote',
      expected_runtime_profile: 'gpu',
      requires_resource_reservation: true,
      labels: { team: 'a' },
    }
    const task = await runtime.run({ ...TRUE, control_context })
    expect(task.status).toBe('success')
    expect(JSON.parse(readFileSync(task.artifacts.request_path, 'utf8')).control_context).toMatchObject(control_context)
    expect(task.reservation).toEqual({ task_slots: 1 })
    expect(task.execution_plan.degraded).toBe(false)
  })

  test('takes a wall time that no 32-bit timer can hold', async () => {
    const task = await runtime.runScript('echo done', { limits: { wall_time_ms: 30 * 24 * 3_600_000 } })
    expect(task).toMatchObject({ status: 'success', stdout: 'done\n' })
  })
})

describe('validation answers 400 invalid_input, and leaves nothing behind', () => {
  test.each([
    ['malformed JSON', '{"execution": '],
    ['no body', ''],
  ])('%s', async (_, body) => {
    const [status, code, message] = await refusal(body)
    expect([status, code]).toEqual([400, 'invalid_input'])
    expect(message).not.toBe('')
  })

  test.each([
    ['execution.kind is required (command or script)', { execution: { program: '/bin/true' } }],
    ['execution.program is required for command tasks', { execution: { kind: 'command' } }],
    ['sandbox.workspace_subdir cannot contain parent traversal', { ...TRUE, sandbox: { workspace_subdir: '../a' } }],
    ['limits.wall_time_ms must be greater than 0', { ...TRUE, limits: { wall_time_ms: 0 } }],
    ['control_context values cannot be empty strings', { ...TRUE, control_context: { labels: { team: '' } } }],
    ['invalid JSON: metadata.a: expected string, got number', { ...TRUE, metadata: { a: 1 } }],
  ])('%s', async (message, body) => {
    expect(await refusal(body)).toEqual([400, 'invalid_input', message])
  })

  test('a rootfs that is no directory', async () => {
    using dir = tempDir()
    for (const rootfs of [join(dir.path, 'nothing'), process.execPath]) {
      const body = { ...TRUE, sandbox: { ...LINUX, chroot: true, rootfs }, policy: { capability_mode: 'adaptive' } }
      const [status, code] = await refusal(body)
      expect([rootfs, status, code]).toEqual([rootfs, 400, 'invalid_input'])
    }
  })
})
