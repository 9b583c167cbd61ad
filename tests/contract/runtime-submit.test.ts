/**
 * POST /api/v1/tasks of the runtime: what is accepted, what is refused and with which words. Against the built service.
 * Source: spec, Resources B and Errors B; contract 2 and 5, Values and Runtime.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SubmitTaskResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, SLEEP, script } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'

setDefaultTimeout(60_000)

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

  test('means stored and queued, not that a process has started', async () => {
    await using busy = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await busy.submit(SLEEP)
    const id = await busy.submit(script('echo never'))
    expect(await busy.get(id)).toMatchObject({ task_id: id, handle_id: id, status: 'accepted', stdout: '', stderr: '' })
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
    ['null', 'null'],
    ['an array', '[]'],
    ['a text', '"/bin/true"'],
  ])('%s', async (_, body) => {
    const [status, code, message] = await refusal(body)
    expect([status, code]).toEqual([400, 'invalid_input'])
    expect(message).not.toBe('')
  })

  const ofScript = (more: object) => ({ execution: { kind: 'script', script: 'true', ...more } })
  const ofCommand = (more: object) => ({ execution: { kind: 'command', program: '/bin/true', ...more } })

  test.each([
    ['execution.program is required for command tasks', { execution: { kind: 'command' } }],
    ['execution.program is required for command tasks', { execution: { kind: 'command', program: '' } }],
    ['execution.program is required for command tasks', { execution: { kind: 'command', program: null } }],
    ['execution.script is required for script tasks', { execution: { kind: 'script' } }],
    ['execution.script is required for script tasks', { execution: { kind: 'script', script: '' } }],
    ['execution.script must be empty for command tasks', ofCommand({ script: 'true' })],
    ['sandbox.workspace_subdir must be relative', { ...TRUE, sandbox: { workspace_subdir: '/tmp' } }],
    ['sandbox.workspace_subdir must be relative', { ...TRUE, sandbox: { ...LINUX, workspace_subdir: '/' } }],
    ['sandbox.workspace_subdir cannot contain parent traversal', { ...TRUE, sandbox: { workspace_subdir: '..' } }],
    ['sandbox.workspace_subdir cannot contain parent traversal', { ...TRUE, sandbox: { workspace_subdir: '../a' } }],
    ['sandbox.workspace_subdir cannot contain parent traversal', { ...TRUE, sandbox: { workspace_subdir: 'a/../b' } }],
    ['sandbox.workspace_subdir cannot contain parent traversal', { ...TRUE, sandbox: { workspace_subdir: 'a/..' } }],
    ['sandbox.rootfs is required when sandbox.chroot=true', { ...TRUE, sandbox: { ...LINUX, chroot: true } }],
    [
      'sandbox.chroot requires sandbox.profile=linux_sandbox',
      { ...TRUE, sandbox: { profile: 'process', chroot: true, rootfs: '/usr' } },
    ],
    ['sandbox.chroot requires sandbox.profile=linux_sandbox', { ...TRUE, sandbox: { chroot: true, rootfs: '/usr' } }],
    ['control_context values cannot be empty strings', { ...TRUE, control_context: { tenant: '' } }],
    ['control_context values cannot be empty strings', { ...TRUE, control_context: { owner: '' } }],
    ['control_context values cannot be empty strings', { ...TRUE, control_context: { control_plane_mode: '' } }],
    ['control_context values cannot be empty strings', { ...TRUE, control_context: { expected_runtime_profile: '' } }],
    ['control_context values cannot be empty strings', { ...TRUE, control_context: { labels: { team: '' } } }],
  ])('%s: %j', async (message, body) => {
    expect(await refusal(body)).toEqual([400, 'invalid_input', message])
  })

  test.each([
    ['no execution', {}],
    ['execution: null', { execution: null }],
    ['execution that is no object', { execution: '/bin/true' }],
    ['no kind', { execution: { program: '/bin/true' } }],
    ['another kind', { execution: { kind: 'container', program: '/bin/true' } }],
    ['program of a script', ofScript({ program: '/bin/true' })],
    ['args of a script', ofScript({ args: ['-x'] })],
    ['interpreter of a command', ofCommand({ interpreter: ['/bin/sh'] })],
    ['program that is no text', { execution: { kind: 'command', program: 1 } }],
    ['args that are no array', ofCommand({ args: '-x' })],
    ['args that are no texts', ofCommand({ args: [1] })],
    ['interpreter that is no array', ofScript({ interpreter: '/bin/sh' })],
    ['an env key with =', ofCommand({ env: { 'a=b': 'c' } })],
    ['an empty env key', ofCommand({ env: { '': 'c' } })],
    ['an env value that is no text', ofCommand({ env: { a: 1 } })],
    ['env that is an array', ofCommand({ env: ['a=b'] })],
    ['an empty label key', { ...TRUE, control_context: { labels: { '': 'a' } } }],
    ['a label that is no text', { ...TRUE, control_context: { labels: { a: 1 } } }],
    ['a tenant that is no text', { ...TRUE, control_context: { tenant: 7 } }],
    ['requires_strict_sandbox that is no boolean', { ...TRUE, control_context: { requires_strict_sandbox: 'yes' } }],
    ['metadata with a number', { ...TRUE, metadata: { a: 1 } }],
    ['metadata that is an array', { ...TRUE, metadata: ['a'] }],
    ['another capability mode', { ...TRUE, policy: { capability_mode: 'lenient' } }],
    ['another profile', { ...TRUE, sandbox: { profile: 'docker' } }],
    ['an unknown namespace', { ...TRUE, sandbox: { ...LINUX, namespaces: { time: true } } }],
    ['a namespace that is no boolean', { ...TRUE, sandbox: { ...LINUX, namespaces: { pid: 1 } } }],
    [
      'mount: false with chroot',
      { ...TRUE, sandbox: { ...LINUX, chroot: true, rootfs: '/', namespaces: { mount: false } } },
    ],
    ['limits that are no object', { ...TRUE, limits: 5 }],
  ])('%s', async (_, body) => {
    const [status, code, message] = await refusal(body)
    expect([status, code]).toEqual([400, 'invalid_input'])
    expect(message).not.toBe('')
  })

  test.each(['wall_time_ms', 'cpu_time_sec', 'memory_bytes', 'pids_max', 'stdout_max_bytes', 'stderr_max_bytes'])(
    'limits are all positive numbers: %s',
    async (limit) => {
      for (const value of [0, -1, '5', true, [1]]) {
        const [status, code, message] = await refusal({ ...TRUE, limits: { [limit]: value } })
        expect([value, status, code]).toEqual([value, 400, 'invalid_input'])
        expect(message).toContain(limit)
      }
    },
  )

  test('a rootfs that is no directory', async () => {
    using dir = tempDir()
    for (const rootfs of [join(dir.path, 'nothing'), process.execPath]) {
      const body = { ...TRUE, sandbox: { ...LINUX, chroot: true, rootfs }, policy: { capability_mode: 'adaptive' } }
      const [status, code] = await refusal(body)
      expect([rootfs, status, code]).toEqual([rootfs, 400, 'invalid_input'])
    }
  })
})

describe('NUL, which no program can be given, is refused or ends as launch_failed', () => {
  test.each([
    ['program', command('/bin/tr\0ue')],
    ['args', command('/bin/echo', 'a\0b')],
    ['env', { execution: { kind: 'command', program: '/bin/true', env: { A: 'b\0c' } } }],
    ['interpreter', { execution: { kind: 'script', script: 'true', interpreter: ['/bin/sh', '\0'] } }],
    ['workspace_subdir', { ...TRUE, sandbox: { workspace_subdir: 'a\0b' } }],
  ])('%s', async (_, body) => {
    const response = await runtime.post(body)
    if (response.status === 200) {
      const { task_id } = (await response.json()) as SubmitTaskResponse
      expect((await runtime.ended(task_id)).error?.code).toBe('launch_failed')
    } else {
      expect((await refused(response)).slice(0, 2)).toEqual([400, 'invalid_input'])
    }
  })
})
