/**
 * Tasks of type runtime: control asks the runtime service and tells what came of it. Both services as they are built.
 * Source: contract 1, Executors (runtime) and 5; what a user is told when something is wrong.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { TOKEN } from '../support/token-runtime.ts'
import { until } from '../support/until.ts'

let pair: Pair
beforeAll(async () => {
  pair = await startPair({ runtimeFlags: ['--disable-linux-sandbox'] })
})
afterAll(() => pair[Symbol.asyncDispose]())

const echo = { program: '/bin/echo', args: ['hi', 'there'] }
const asScript = { script: 'echo hi there' }

type Result = TaskStatusResponse & { truncated: boolean; logs: { stdout: string; stderr: string } }
const resultOf = (task: TaskRecord) => task.result as Result

const run = async (pair: Pair, task: object): Promise<TaskRecord> => pair.control.run({ type: 'runtime', ...task })

describe('a runtime task', () => {
  test.each([
    ['a whole request', { type: 'runtime', params: { execution: { kind: 'command', ...echo } } }],
    ['a whole request without a kind', { type: 'runtime', input: { execution: echo } }],
    ['a whole request of a script', { type: 'runtime', input: { execution: { kind: 'script', ...asScript } } }],
    ['flat fields', { type: 'runtime', params: echo }],
    ['flat fields of a script', { type: 'runtime', params: asScript }],
    ['a type with its tool', { type: 'runtime.command', params: echo }],
    ['a type with its tool, a script', { type: 'runtime.script', params: { ...asScript, interpreter: ['/bin/sh'] } }],
    ['a tool name', { type: 'runtime', tool_name: 'command', params: echo }],
    ['a tool name with its category', { type: 'runtime', tool_name: 'runtime.script', params: asScript }],
    ['nulls where nothing is meant', { type: 'runtime', params: { ...echo, script: null, limits: null, env: null } }],
  ])('may be given as %s', async (_, given) => {
    const task = await run(pair, given)
    expect(task).toMatchObject({ type: 'runtime', execution_category: 'runtime', status: 'success', attempt: 1 })
    expect(resultOf(task)).toMatchObject({ status: 'success', stdout: 'hi there\n', stderr: '', exit_code: 0 })
  })

  test('has as its result what the runtime service says, and its handle', async () => {
    const params = { script: 'echo out; echo err >&2', limits: { wall_time_ms: 60_000 }, metadata: { a: 'b' } }
    const task = await run(pair, { params })
    const handle = `${task.id}-${task.graph_id}-1`
    expect(task.handle_id).toBe(handle)
    expect(task.runtime).toMatchObject({ status: 'success', handle_id: handle, attempt: 1 })
    const { truncated, logs, ...result } = resultOf(task)
    expect(result).toEqual(await pair.runtime.get(handle))
    expect(result.usage?.duration_ms).toBeGreaterThanOrEqual(0)
    expect(result.metadata).toEqual({ a: 'b' })
    expect(truncated).toBe(false)
    expect(await (await fetch(logs.stdout)).text()).toBe('out\n')
    expect(await (await fetch(logs.stderr)).text()).toBe('err\n')
  })

  test('knows the number of its attempt', async () => {
    const script = 'n=$(basename "$TASKMILL_ATTEMPT"); echo $n; [ $n -ge 3 ]'
    const task = await run(pair, { tool_name: 'script', params: { script }, retry: 5, backoff: { initial_ms: 0 } })
    expect(task).toMatchObject({ status: 'success', attempt: 3 })
    expect(resultOf(task).stdout).toBe('3\n')
    const given = { script: 'echo "$TASKMILL_ATTEMPT"', env: { TASKMILL_ATTEMPT: 'mine' } }
    expect(resultOf(await run(pair, { tool_name: 'script', params: given })).stdout).toBe('mine\n')
  })

  test('is one of a graph like any other', async () => {
    await using pair = await startPair()
    await pair.control.submit([
      { id: 'first', type: 'noop' },
      { id: 'second', type: 'runtime', params: echo, depends_on: ['first'] },
      { id: 'third', type: 'runtime.script', params: { script: 'exit 3' }, depends_on: ['second'] },
      { id: 'fourth', type: 'noop', depends_on: ['third'] },
    ])
    const tasks = await pair.control.allEnded()
    expect(tasks.map(({ status }) => status)).toEqual(['success', 'success', 'failed', 'skipped'])
    await pair.isQuiet()
  })

  test.each(['runtime.command', 'command'])('can be an action of the kind %s', async (kind) => {
    const response = await pair.control.fetch('/adapters/actions', {
      method: 'POST',
      body: JSON.stringify({ action_id: 'act', action: { kind, input: echo } }),
    })
    expect(response.status).toBe(202)
    expect(await pair.control.ended('act')).toMatchObject({ type: 'runtime', tool_name: 'command', status: 'success' })
  })

  test.each([
    ['a slash and a space', 'build/main and more'],
    ['letters of other scripts', 'größe-測試'],
    ['more characters than fit', 'x'.repeat(500)],
    ['nothing but dots', '...'],
  ])('may have an id with %s', async (_, id) => {
    const task = await run(pair, { id, params: echo })
    expect(task).toMatchObject({ id, status: 'success' })
    expect(task.handle_id).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
    expect(task.handle_id).toEndWith(`-${task.graph_id}-1`)
  })

  test('of ids that differ only in what does not fit is not the same there', async () => {
    await using pair = await startPair()
    const ids = ['a b', 'a/b', 'a_b', `${'x'.repeat(200)}1`, `${'x'.repeat(200)}2`]
    await pair.control.submit(ids.map((id, i) => ({ id, type: 'runtime', params: { script: `echo ${i}` } })))
    const tasks = await pair.control.allEnded()
    expect(tasks.map((task) => resultOf(task).stdout)).toEqual(ids.map((_, i) => `${i}\n`))
    expect(new Set(tasks.map(({ handle_id }) => handle_id)).size).toBe(ids.length)
  })

  test('has another handle for each attempt', async () => {
    const script = `[ -e ${pair.file('twice')} ] || { : > ${pair.file('twice')}; exit 9; }; echo well`
    const task = await run(pair, { params: { script }, retry: 1 })
    expect(task).toMatchObject({ status: 'success', attempt: 2, handle_id: `${task.id}-${task.graph_id}-2` })
    expect(await pair.runtime.get(`${task.id}-${task.graph_id}-1`)).toMatchObject({ status: 'failed', exit_code: 9 })
  })
})

describe('what goes wrong in a runtime task', () => {
  test.each<[string, object, object]>([
    ['an exit code', { script: 'exit 3' }, { code: 'exit_nonzero', message: 'task exited with code 3' }],
    [
      'its wall time',
      { script: 'sleep 600', limits: { wall_time_ms: 50 } },
      { code: 'timeout', message: 'task exceeded wall_time_ms' },
    ],
    ['no such program', { program: '/no/such/program' }, { code: 'launch_failed', message: expect.any(String) }],
  ])('is told: %s', async (_, params, error) => {
    const task = await run(pair, { params })
    expect(task.status).toBe('failed')
    expect(task.error).toBe(task.runtime!.error!.message)
    expect(task.runtime?.error).toMatchObject({ ...error, source: 'runtime' })
    expect(resultOf(task)).toMatchObject({ status: 'failed', error: { code: task.runtime?.error?.code } })
    expect(resultOf(task).usage ?? null).toEqual((await pair.runtime.get(task.handle_id!)).usage ?? null)
    await pair.isQuiet()
  })

  test.each<[string, object, object]>([
    ['nothing to run', {}, { code: 'invalid_input', message: 'execution.program is required for command tasks' }],
    [
      'an empty script',
      { execution: { kind: 'script' } },
      { code: 'invalid_input', message: 'execution.script is required for script tasks' },
    ],
    [
      'a limit of the wrong type',
      { ...echo, limits: { pids_max: 'many' } },
      { code: 'invalid_input', message: expect.stringContaining('limits.pids_max') },
    ],
    [
      'more than there is',
      { ...echo, limits: { memory_bytes: 2 ** 52 } },
      { code: 'resource_limit_exceeded', message: expect.stringContaining('memory') },
    ],
    [
      'what the host may not do, strictly',
      { ...echo, sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } },
      { code: 'denied', message: expect.stringContaining('linux_sandbox') },
    ],
  ])('is told when the runtime service refuses it: %s', async (_, params, error) => {
    const task = await run(pair, { params })
    expect(task.status).toBe('failed')
    expect(task.error).toBe(task.runtime!.error!.message)
    expect(task.runtime?.error).toMatchObject({ ...error, retryable: false, source: 'runtime' })
    expect(task).not.toHaveProperty('handle_id')
  })

  test.each<[string, object, string]>([
    ['params that are no object', { params: 'make' }, 'parse runtime params: expected object'],
    ['an execution that is none', { params: { execution: [] } }, 'parse runtime params: execution: expected object'],
    [
      'both forms at once',
      { params: { ...echo, execution: echo } },
      'parse runtime params: program and execution exclude each other',
    ],
    [
      'an unknown tool',
      { tool_name: 'function', params: echo },
      'unknown runtime tool "function" (available: command, script)',
    ],
    [
      'a kind that the tool is not',
      { tool_name: 'command', params: { execution: { kind: 'script', script: 'ls' } } },
      'execution.kind "script" contradicts the tool runtime.command: leave it out',
    ],
  ])('is told before anybody is asked: %s', async (_, task, message) => {
    const before = await pair.runtime.json('/api/v1/tasks?limit=1000')
    const ended = await pair.control.run({ type: 'runtime', ...task })
    expect(await pair.runtime.json('/api/v1/tasks?limit=1000')).toEqual(before)
    expect(ended).toMatchObject({ status: 'failed', error: message, runtime: { error: { code: 'invalid_input' } } })
  })

  test('a full queue is a failure that may pass', async () => {
    await using pair = await startPair({ runtimeFlags: ['--max-running-tasks', '1', '--max-queued-tasks', '0'] })
    await pair.script('holder', 'echo; sleep 600')
    await pair.running('holder')
    const task = await run(pair, { params: echo })
    expect(task.runtime?.error).toMatchObject({ code: 'resource_limit_exceeded', retryable: true, source: 'runtime' })
    await pair.control.fetch('/tasks/holder/cancel', { method: 'POST' })
    await pair.ended('holder')
  })

  test('a task that somebody else ends there has failed, and may be tried again', async () => {
    await pair.script('a', 'echo; sleep 600')
    const { task_id } = await pair.running('a')
    expect((await pair.runtime.kill(task_id)).status).toBe(200)
    const { here } = await pair.ended('a')
    expect(here).toMatchObject({ status: 'failed', runtime: { error: { code: 'cancelled', retryable: true } } })
  })
})

describe('much output', () => {
  test('is cut in the result, which says where all of it is', async () => {
    const script = `awk 'BEGIN { for (i = 0; i < 40000; i++) printf "größe%d\\n", i; print "err" > "/dev/stderr" }'`
    const task = await run(pair, { params: { script } })
    const { stdout, stdout_truncated, stderr, stderr_truncated, truncated, logs } = resultOf(task)
    const all = await (await fetch(logs.stdout)).text()
    expect({ stdout_truncated, stderr_truncated, truncated, stderr }).toEqual({
      ...{ stdout_truncated: true, stderr_truncated: false, truncated: true, stderr: 'err\n' },
    })
    expect(Buffer.byteLength(stdout!)).toBeLessThanOrEqual(262_144)
    expect(Buffer.byteLength(stdout!)).toBeGreaterThan(262_144 - 4)
    expect(all.startsWith(stdout!)).toBe(true)
    expect(all).toEndWith('größe39999\n')
  })

  test('is cut at what the task itself asked for, if that is less', async () => {
    const task = await run(pair, { params: { script: 'echo 123456789', limits: { stdout_max_bytes: 4 } } })
    expect(resultOf(task)).toMatchObject({ stdout: '1234', stdout_truncated: true, truncated: true })
  })
})

describe('on whose behalf a task runs', () => {
  const requestOf = (task: TaskRecord) => JSON.parse(readFileSync(resultOf(task).artifacts.request_path, 'utf8'))

  test('is what the task says, else what control is told', async () => {
    await using pair = await startPair({ controlEnv: { SERVICE_RUNTIME_TENANT: 'lab', SERVICE_RUNTIME_OWNER: 'ada' } })
    const plain = await run(pair, { params: echo })
    expect(requestOf(plain).control_context).toEqual({ tenant: 'lab', owner: 'ada' })
    const own = { tenant: 'plant', labels: { team: 'x' } }
    const named = await run(pair, { params: { ...echo, control_context: own } })
    expect(requestOf(named).control_context).toEqual({ ...own, owner: 'ada' })
  })

  test('is nobody’s where neither says', async () => {
    const { control_context } = requestOf(await run(pair, { params: echo }))
    expect(control_context?.owner).toBeUndefined()
    expect(control_context?.tenant).toBeUndefined()
  })

  test('keeps others from ending it there, and not us', async () => {
    await using pair = await startPair({ controlEnv: { SERVICE_RUNTIME_OWNER: 'ada' } })
    await pair.script('a', 'echo; sleep 600')
    const { task_id } = await pair.running('a')
    expect((await pair.runtime.kill(task_id)).status).toBe(403)
    await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })
    const { here, there } = await pair.ended('a')
    expect([here.status, there.status]).toEqual(['cancelled', 'cancelled'])
  })

  test('counts towards the quota of its tenant', async () => {
    await using pair = await startPair({
      controlEnv: { SERVICE_RUNTIME_TENANT: 'lab' },
      runtimeFlags: ['--tenant-quota', 'lab=slots:1,pids:10'],
    })
    const task = await run(pair, { params: { ...echo, limits: { pids_max: 11 } } })
    expect(task.runtime?.error).toMatchObject({ code: 'resource_limit_exceeded', retryable: false })
  })

  test('carries the trace id of the submission', async () => {
    await pair.control.submit([{ id: 'a', type: 'runtime', params: echo }], { 'x-trace-id': 'trace-me-42' })
    const { handle_id } = await pair.control.ended('a')
    await until(
      () => pair.runtime.log.filter(({ task_id }) => task_id === handle_id),
      (lines) => lines.some(({ msg, trace_id }) => msg === 'task accepted' && trace_id === 'trace-me-42'),
    )
  })
})

describe('a runtime service with a token', () => {
  test.each<[string, Record<string, string>]>([
    ['gets its own', { SERVICE_RUNTIME_TOKEN: TOKEN }],
    ['gets its own before the one of control', { SERVICE_RUNTIME_TOKEN: TOKEN, SERVICE_TOKEN: 'another' }],
  ])('%s', async (_, controlEnv) => {
    const runtimeEnv = { SERVICE_TOKEN: TOKEN }
    const token = controlEnv.SERVICE_TOKEN ?? ''
    const port = await freePort()
    await using _runtime = await tokenRuntime(port, runtimeEnv)
    await using control = await startControl({ flags: ['--runtime-url', `http://127.0.0.1:${port}`], env: controlEnv })
    const auth = { authorization: `Bearer ${token}` }
    await control.submit([{ id: 'a', type: 'runtime', params: echo }], auth)
    const ended = await until(
      async () => (await (await control.fetch('/tasks/a', { headers: auth })).json()) as TaskRecord,
      ({ status }) => status === 'success' || status === 'failed',
    )
    expect(ended).toMatchObject({ status: 'success' })
  })

  test('refuses whoever does not have it, in words', async () => {
    const port = await freePort()
    await using _runtime = await tokenRuntime(port, { SERVICE_TOKEN: TOKEN })
    await using control = await startControl({
      flags: ['--runtime-url', `http://127.0.0.1:${port}`],
      env: { SERVICE_RUNTIME_TOKEN: 'wrong' },
    })
    const task = await control.run({ type: 'runtime', params: echo })
    expect(task.runtime?.error).toMatchObject({ code: 'denied', retryable: false, source: 'runtime' })
    expect(task.error).toContain('SERVICE_RUNTIME_TOKEN')
  })
})

const tokenRuntime = async (port: number, env: Record<string, string>) => {
  const { startTokenRuntime } = await import('../support/token-runtime.ts')
  return startTokenRuntime({ env, flags: ['--listen-addr', `127.0.0.1:${port}`] })
}

describe('a runtime service that is not there', () => {
  test('is a failure that may pass, in words', async () => {
    const port = await freePort()
    await using control = await startControl({ flags: ['--runtime-url', `http://127.0.0.1:${port}`] })
    const task = await control.run({ type: 'runtime', params: echo })
    expect(task.status).toBe('failed')
    expect(task.error).toBe(
      `cannot reach the runtime service at http://127.0.0.1:${port}: connection refused (is it running? start it with taskmill-control --with-runtime or taskmill-runtime serve, or set SERVICE_RUNTIME_URL)`,
    )
    expect(task.runtime?.error).toMatchObject({ code: 'external_failure', retryable: true })
    expect(task).not.toHaveProperty('handle_id')
  })

  test('is asked again by the next attempt', async () => {
    await using pair = await startPair()
    await pair.stopRuntime('SIGTERM')
    await pair.script('a', 'echo hi', { retry: 20 })
    await until(
      () => pair.control.get('a'),
      ({ attempt = 0 }) => attempt > 1,
    )
    await pair.startRuntime()
    expect((await pair.ended('a')).here).toMatchObject({ status: 'success' })
  })

  test('is something else: that is said', async () => {
    await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
    await using control = await startControl({ flags: ['--runtime-url', `http://127.0.0.1:${server.port}`] })
    const task = await control.run({ type: 'runtime', params: echo })
    expect(task.error).toContain('is this the runtime service?')
    expect(task.runtime?.error?.code).toBe('external_failure')
  })
})

describe('the timeout of a runtime task', () => {
  test('ends it there', async () => {
    await pair.script('a', 'sleep 600', { timeout: 100 })
    const { here, there } = await pair.ended('a')
    expect(here).toMatchObject({ status: 'failed', error: 'task timed out after 100ms' })
    expect(here.runtime?.error).toMatchObject({ code: 'timeout', retryable: true })
    expect(there.status).toBe('cancelled')
    await pair.isQuiet()
  })

  test('does not count its time in the queue there, over a kill of control too, and counts from the start', async () => {
    await using pair = await startPair({ runtimeFlags: ['--max-running-tasks', '1'] })
    await pair.script('holds', `echo; ${waitFor(pair.file('go'))}`)
    await pair.running('holds')
    await pair.script('waits', 'echo; sleep 600', { timeout: 1_000 })
    const { task_id } = await pair.there('waits', ({ status }) => status === 'accepted')
    await until(
      () => pair.control.get('waits'),
      ({ waiting }) => waiting?.detail?.startsWith('runtime default: waiting for ') === true,
    )
    await pair.stopControl('SIGKILL')
    await pair.startControl()
    const queuedAt = Date.parse((await pair.runtime.get(task_id)).created_at)
    await until(
      () => Date.now() - queuedAt,
      (ms) => ms > 2_000,
    )
    expect((await pair.control.get('waits')).status).toBe('running')
    await Bun.write(pair.file('go'), '')
    await pair.running('waits')
    expect((await pair.ended('waits')).here).toMatchObject({ attempt: 1, error: 'task timed out after 1000ms' })
  })

  test('is for each attempt', async () => {
    await pair.script('a', 'sleep 600', { timeout: 60, retry: 1 })
    const { here } = await pair.ended('a')
    expect(here).toMatchObject({ attempt: 2, error: 'task failed after all retries: task timed out after 60ms' })
    const first = await pair.runtime.get(`a-${here.graph_id}-1`)
    expect(first.status).toBe('cancelled')
  })

  test('bounds its wall time there, which has a default of its own', async () => {
    const planned = async (task: object) => {
      const ended = await run(pair, { params: echo, ...task })
      return resultOf(ended).execution_plan.resource_enforcement.wall_time_ms
    }
    expect(await planned({})).toBe(300_000)
    expect(await planned({ timeout: 3_600_000 })).toBe(3_610_000)
    expect(await planned({ timeout: 3_600_000, params: { ...echo, limits: { wall_time_ms: 1_000 } } })).toBe(1_000)
  })
})
