/**
 * `POST /tasks?dry_run=true`: what a submission would be answered, without its effects. Goal: faults, waves and plans over
 * HTTP and MCP; nothing is kept, on disk neither. The built executables.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startPair } from '../support/pair.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const GRAPH = { tasks: [noop('b', 'a'), noop('a')] }
const FAULTY = { tasks: [noop('b', 'c'), { id: 'a', type: 'noop', depend_on: [] }] }

async function dryRun(control: Control, graph: object, headers: Record<string, string> = {}): Promise<GraphDryRun> {
  const response = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(graph), headers })
  expect(response.status).toBe(200)
  return (await response.json()) as GraphDryRun
}

test('a valid graph is answered 200 with its waves, a faulty one with all its faults', async () => {
  expect(await dryRun(control, GRAPH)).toEqual({
    ...{ valid: true, errors: [], warnings: [], waves: [['a'], ['b']], critical_path: ['a', 'b'], runtime: {} },
  })
  expect(await dryRun(control, FAULTY)).toMatchObject({
    valid: false,
    errors: [
      { message: 'task b depends on unknown task c', task_id: 'b' },
      { message: 'unknown field "depend_on" in task a (did you mean "depends_on"?)', task_id: 'a' },
    ],
  })
  const broken = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: '{' })
  expect([broken.status, await broken.json()]).toMatchObject([200, { valid: false, errors: [{}] }])
})

test('the answer has the limits of both clocks of each task that has any', async () => {
  const limited = (id: string, more: object, type = 'noop') => ({ ...noop(id), type, ...more })
  const tasks = [
    limited('both', { queue_timeout: 5_000, timeout: 60_000 }),
    limited('waits', { queue_timeout: 5_000, timeout: 0 }),
    limited('runs', { queue_timeout: -1, timeout: 60_000 }),
    limited('free', { queue_timeout: 0, timeout: null }),
    limited('asked', { queue_timeout: 5_000, timeout: 60_000 }, 'approval'),
  ]
  expect((await dryRun(control, { tasks })).time_limits).toEqual({
    both: { queue_timeout: 5_000, timeout: 60_000 },
    waits: { queue_timeout: 5_000 },
    runs: { timeout: 60_000 },
    asked: { timeout: 60_000 },
  })
  expect(await dryRun(control, GRAPH)).not.toHaveProperty('time_limits')
})

test('faults of references and parameters are among them, in a graph of an agent, too', async () => {
  await using mcp = await connectClient(control.url)
  const message = (value: unknown) => ({ params: { message: value } })
  const graph = {
    params: { version: null },
    tasks: [
      noop('a'),
      { ...noop('b'), ...message([{ $from: 'a' }, { $param: 'x' }, { $from: 7 }]) },
      { ...noop('c', 'a'), ...message({ $from: 'a' }), retry: -1 },
    ],
  }
  const errors = [
    { message: 'task c: retry must be a non-negative integer', task_id: 'c' },
    { message: 'graph needs parameter version' },
    { message: 'task b: params.message[2]: $from: expected the id of a task', task_id: 'b' },
    { message: 'task b uses unknown parameter "x"', task_id: 'b' },
    { message: 'task b references a but does not depend on it', task_id: 'b' },
  ]
  expect((await dryRun(control, graph)).errors).toEqual(errors)
  const { data } = await mcp.call('submit_graph', { ...graph, tasks: graph.tasks.slice(0, 2), dry_run: true })
  expect(data.errors).toEqual(errors.slice(1))
})

test('a command that is not allowed and arguments of a wrong type are errors, which a submission warns of', async () => {
  const shell = (id: string, params: object, more: object = {}) => ({ id, type: 'shell', params, ...more })
  const tasks = [
    shell('denied', { command: 'rm' }),
    shell('wrong', { command: 'echo', args: 'x' }),
    shell('spare', { command: 'rm' }, { continue_on_error: true }),
    noop('after', 'denied'),
  ]
  const { valid, errors, warnings } = await dryRun(control, { tasks })
  expect([valid, errors, warnings]).toEqual([
    false,
    [
      { message: expect.stringMatching(/^task denied: .*rm/), task_id: 'denied', fails: true },
      { message: expect.stringMatching(/^task wrong: .*args/), task_id: 'wrong', fails: true },
    ],
    [{ task_id: 'spare', message: expect.stringContaining('rm') }],
  ])
  const accepted = await control.post({ tasks })
  expect([accepted.status, await accepted.json()]).toMatchObject([
    202,
    { warnings: ['denied', 'wrong', 'spare'].map((task_id) => ({ task_id })) },
  ])
})

test('an unknown field inside of inputs is one error', async () => {
  await using pair = await startPair()
  const inputs = { lib: { task_id: 'x', file: 'y', foo: 1 } }
  const tasks = [{ id: 'a', type: 'runtime.command', params: { program: 'true', inputs } }]
  const { errors } = await dryRun(pair.control, { tasks })
  expect(errors).toEqual([{ message: 'unknown field "inputs.lib.foo" in task a', task_id: 'a' }])
})

test('a brief one tells the faults alone', async () => {
  const brief = async (graph: object) => {
    const response = await control.fetch('/tasks?dry_run=true&brief=true', {
      method: 'POST',
      body: JSON.stringify(graph),
    })
    return [response.status, await response.json()]
  }
  const nothing = { warnings: [], waves: [], critical_path: [], runtime: {} }
  expect(await brief(GRAPH)).toEqual([200, { valid: true, errors: [], ...nothing }])
  expect(await brief(FAULTY)).toEqual([200, { ...(await dryRun(control, FAULTY)), ...nothing }])
  const alone = await control.fetch('/tasks?brief=true', { method: 'POST', body: JSON.stringify(GRAPH) })
  expect([alone.status, await alone.json()]).toEqual([400, { error: 'brief requires dry_run=true' }])
})

test('another value than true or false is refused, and nothing is stored', async () => {
  await using control = await startControl()
  const response = await control.fetch('/tasks?dry_run=maybe', { method: 'POST', body: JSON.stringify(GRAPH) })
  expect([response.status, await response.json()]).toEqual([
    400,
    { error: 'invalid dry_run "maybe": expected true or false' },
  ])
  expect(await control.list()).toEqual([])
  const submitted = await control.fetch('/tasks?dry_run=false', { method: 'POST', body: JSON.stringify(GRAPH) })
  expect(submitted.status).toBe(202)
})

test('nothing is kept: no task, no graph, no key, no event, no byte in the data directory', async () => {
  using temp = tempDir()
  const dataDir = join(temp.path, 'data')
  await using control = await startControl({ dataDir, flags: ['--persist-interval', '1h', '--max-stored-tasks', '2'] })
  const { graph_id } = await control.submit([noop('old'), noop('older')])
  const events = await (await control.fetch(`/graphs/${graph_id}/events?after=0&until=ended`)).text()
  const lastId = /.*^id: (\d+)$/ms.exec(events)![1]!
  const onDisk = () =>
    readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => [name, Bun.hash(readFileSync(join(parentPath, name)))])
  const seen = async () => {
    const graphs = await control.fetch('/graphs')
    return [graphs.headers.get('x-event-seq'), await graphs.json(), await control.list()]
  }
  await until(seen, ([upTo]) => upTo === lastId) // then the numbers are reserved, and nothing else is written
  const before = [onDisk(), await seen(), await control.metrics()]
  const key = { 'idempotency-key': 'k' }
  expect((await dryRun(control, GRAPH, key)).valid).toBe(true)
  expect((await dryRun(control, FAULTY, key)).valid).toBe(false)
  expect([onDisk(), await seen(), await control.metrics()]).toEqual(before)
  await control.submit([noop('another')], key)
})

test.skipIf(!canMount)('works while the disk is full', async () => {
  using dir = tempDir()
  using disk = smallDisk(join(dir.path, 'data'), 512 * 1024)
  await using control = await startControl({ dataDir: disk.path, flags: ['--persist-interval', '1h'] })
  disk.fill()
  expect((await control.post(GRAPH)).status).toBe(503)
  expect((await dryRun(control, GRAPH)).valid).toBe(true)
  disk.free()
})

test('submit_graph does the same with dry_run', async () => {
  await using control = await startControl()
  await using mcp = await connectClient(control.url)
  const tasks = [...Array.from({ length: 99 }, (_, i) => noop(`t${i}`)), noop('b', 'c', 't0'), noop('c')]
  const { data, isError } = await mcp.call('submit_graph', { tasks, dry_run: true, scope: 'graph' })
  expect(isError).toBe(false)
  expect(data).toMatchObject({ valid: true, errors: [], critical_path: ['c', 'b'], runtime: {}, truncated: true })
  expect(data.waves.flat()).toHaveLength(100)
  const faulty = await mcp.call('submit_graph', { ...FAULTY, dry_run: true })
  expect(faulty.data).toMatchObject({ valid: false, errors: [{ task_id: 'b' }, { task_id: 'a' }] })
  expect(await control.list()).toEqual([])
})

describe('the plan of a runtime task', () => {
  const graph = {
    tasks: [
      { id: 'fits', type: 'runtime.command', params: { program: '/bin/true' }, timeout: 1000 },
      { id: 'large', type: 'runtime', params: { program: '/bin/true', limits: { memory_bytes: 2 ** 50 } } },
      { id: 'wrong', type: 'runtime.command', params: {} },
      noop('local'),
    ],
  }

  test('is that of the runtime service, or its refusal; then nothing is there', async () => {
    await using pair = await startPair()
    const { valid, errors, runtime, warnings } = await dryRun(pair.control, graph)
    const message = 'task wrong: execution.program is required for command tasks'
    expect([valid, errors, warnings]).toEqual([false, [{ task_id: 'wrong', message, fails: true }], []])
    expect(Object.keys(runtime)).toEqual(['fits', 'large', 'wrong'])
    expect(runtime.fits?.execution_plan).toMatchObject({
      requested_sandbox: { profile: 'process' },
      resource_enforcement: { wall_time_ms: 11_000 },
    })
    expect(runtime.large).toEqual({ error: expect.stringContaining('memory') })
    expect(runtime.wrong).toEqual({ error: 'execution.program is required for command tasks' })
    const { tasks } = (await (await pair.runtime.fetch('/api/v1/tasks')).json()) as { tasks: unknown[] }
    expect(tasks).toEqual([])
  })

  test('has the values of parameters, and is not known while values of other tasks are not', async () => {
    await using pair = await startPair()
    const script = (id: string, value: object, more: object = {}) => ({
      ...{ id, type: 'runtime.script', params: { script: value } },
      ...more,
    })
    const tasks = [script('a', { $param: 'script' }), script('b', { $from: 'a' }, { depends_on: ['a'] })]
    const { valid, warnings, runtime } = await dryRun(pair.control, { params: { script: 'date' }, tasks })
    expect([valid, warnings]).toEqual([true, []])
    expect(runtime.a).toHaveProperty('execution_plan')
    expect(runtime.b).toEqual({ error: 'its parameters have values of other tasks, which are not known yet' })
  })

  test('is an error while the runtime service is away', async () => {
    await using pair = await startPair()
    await pair.stopRuntime('SIGTERM')
    const { valid, runtime } = await dryRun(pair.control, { tasks: graph.tasks.filter(({ id }) => id !== 'wrong') })
    expect(valid).toBe(true)
    expect(runtime.fits).toEqual({ error: expect.stringContaining('cannot reach the runtime service at') })
  })
})
