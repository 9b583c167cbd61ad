/** Tasks with `dynamic: true` add tasks to their graph by their results. The built executables. Source: docs/graphs.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RerunResponse } from '../../shared/contract/rerun.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { ended, read, statusesOf, submit } from '../support/scoped-graphs.ts'
import { tempDir } from '../support/temp.ts'
import { tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const OPEN = { env: { SERVICE_SHELL_POLICY: 'open' } }
let control: Control
beforeAll(async () => {
  control = await startControl(OPEN)
})
afterAll(() => control.dispose())

/** Prints `said`. */
const plan = (id: string, said: unknown, more: object = {}) => ({
  ...{ id, type: 'shell', dynamic: true, ...more },
  params: { command: 'cat', stdin: typeof said === 'string' ? said : JSON.stringify(said) },
})
const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const gate = (id = 'gate') => ({ id, type: 'approval', params: { message: 'go?' } })

test('a plan goes on with what it adds, which depends on what was there, on each other and on the plan', async () => {
  const second = plan('second', { add_tasks: [noop('last', 'done', 'second', 'one')] }, { depends_on: ['two'] })
  const first = { add_tasks: [noop('one', 'first'), noop('two', 'one', 'done', 'gate'), second], note: 'more' }
  const id = await submit(control, [
    gate('go'),
    noop('done', 'go'),
    gate(),
    plan('first', first, { depends_on: ['done'] }),
  ])
  await using stream = await EventStreamClient.open(`${control.url}/graphs/${id}/events`)
  const approve = async (task: string) => {
    await until(async () => (await read(control, id, task)).waiting?.reason, 'approval')
    await control.fetch(`/graphs/${id}/tasks/${task}/approve`, { method: 'POST', body: '{"who":"ada"}' })
  }
  await approve('go')
  await until(async () => (await control.fetch(`/graphs/${id}/tasks/one`)).status, 200)
  expect(await read(control, id, 'one')).toMatchObject({ added_by: 'first' })
  expect(await read(control, id, 'first')).toMatchObject({ dynamic: true, status: 'success' })
  await approve('gate')
  const graph = await ended(control, id)
  expect(graph).toMatchObject({ state: 'success', task_count: 8, revision: 2 })
  await stream.once((events) => events.some(({ event }) => event === 'graph_ended'))
  expect(stream.events.filter(({ event }) => event === 'graph_changed')).toMatchObject([
    { graph_id: id, revision: 1, added: ['one', 'two', 'second'], removed: [], replaced: [], task_id: 'first' },
    { revision: 2, added: ['last'], task_id: 'second' },
  ])
})

test('an HTTP answer adds tasks, and so does a large result, 1,000 at once', async () => {
  const add_tasks = Array.from({ length: 1_000 }, (_, i) => noop(`n${i}`, 'plan'))
  using server = Bun.serve({ port: 0, fetch: () => Response.json({ add_tasks, pad: 'x'.repeat(300_000) }) })
  const id = await submit(control, [
    { id: 'plan', type: 'http', dynamic: true, params: { url: server.url.href } },
    plan('quiet', 'nothing to add'),
    plan('none', { add_tasks: [] }),
  ])
  expect(await ended(control, id)).toMatchObject({ counts: { success: 1_003 }, revision: 1 })
})

describe('an addition is refused', () => {
  test.each([
    ['{"add_tasks": [', 'add_tasks: stdout is not JSON: '],
    [{ add_tasks: { id: 'a' } }, 'add_tasks: expected array, got object'],
    [{ add_tasks: [noop('a'), null] }, 'add_tasks/1: expected object, got null'],
    [
      { add_tasks: [noop('a'), { ...noop('b'), depends_on: 'a' }] },
      'add_tasks/1/depends_on: expected array of strings',
    ],
    [{ add_tasks: [noop('a'), noop('b', 'c')] }, 'add_tasks/1/depends_on: the graph has no task "c"'],
    [
      { add_tasks: [noop('a'), noop('done')] },
      'add_tasks/1/id: the graph has a task "done" already: choose another id',
    ],
    [{ add_tasks: [noop('a'), noop('a')] }, 'add_tasks/1: duplicate task id: a'],
    [{ add_tasks: [noop('a'), { id: 'b', type: 'nothing' }] }, 'add_tasks/1: unknown task type: nothing'],
    [{ add_tasks: [{ ...noop('a'), after: [] }] }, 'add_tasks/0: unknown field "after" in task a'],
    [{ add_tasks: [{ type: 'noop' }] }, 'add_tasks'],
    [{ add_tasks: [noop('a', 'b'), noop('b', 'a')] }, 'add_tasks: cycle detected in task graph'],
    [{ add_tasks: [plan('a', '', { for_each: [1] })] }, 'add_tasks/0: task a: dynamic and for_each exclude each other'],
  ])('%j', async (said, message) => {
    const id = await submit(control, [noop('done'), plan('plan', said, { retry: 3, depends_on: ['done'] })])
    const graph = await ended(control, id)
    expect(statusesOf(graph)).toEqual({ done: 'success', plan: 'failed' })
    expect(graph.revision).toBeUndefined()
    const { attempt, runtime, result } = await read(control, id, 'plan')
    expect([attempt, runtime?.error?.code]).toEqual([1, 'invalid_input'])
    expect(runtime?.error?.message).toStartWith(message)
    expect(result).toMatchObject({ exit_code: 0 })
  })
})

test('a graph that would add tasks for ever ends at --max-graph-tasks', async () => {
  await using small = await startControl({ ...OPEN, flags: ['--max-graph-tasks', '5'] })
  using temp = tempDir()
  const script = join(temp.path, 'plan.sh')
  const again = { type: 'shell', dynamic: true, params: { command: 'sh', args: [script] } }
  const added = JSON.stringify({ ...again, id: 'ID' }).replaceAll('"', '\\"')
  writeFileSync(script, `echo "{\\"add_tasks\\": [${added.replace('ID', () => '$$')}]}"\n`)
  const id = await submit(small, [{ ...again, id: 'first' }])
  const graph = await ended(small, id)
  expect(graph).toMatchObject({ counts: { success: 4, failed: 1 }, revision: 4 })
  const failed = await read(small, id, graph.tasks.find(({ status }) => status === 'failed')!.id)
  expect(failed.runtime?.error).toMatchObject({
    code: 'resource_limit_exceeded',
    message: expect.stringContaining('the graph has 6 tasks, but at most 5 are allowed (--max-graph-tasks)'),
  })
  expect((await small.post({ tasks: Array.from({ length: 6 }, (_, i) => noop(`n${i}`)) })).status).toBe(413)
})

test.each([
  [[{ id: 'a', type: 'noop', dynamic: true, for_each: [1] }], 'task a: dynamic and for_each exclude each other'],
  [[{ id: 'a', type: 'noop', dynamic: true, cache: { key: 'k' } }], 'task a: dynamic and cache exclude each other'],
  [[{ id: 'a', dynamic: true, tasks: [noop('b')] }], 'task a: dynamic and tasks exclude each other'],
  [[{ id: 'a', tasks: [{ ...noop('b'), dynamic: true }] }], 'task a/b: dynamic is not possible in a group'],
  [[{ ...gate('a'), dynamic: true }], 'task a: dynamic and the type approval exclude each other'],
  [[{ id: 'a', type: 'wait', dynamic: true, params: {} }], 'task a: dynamic and the type wait exclude each other'],
  [[{ id: 'a', type: 'noop', dynamic: 'yes' }], 'tasks[0].dynamic: expected boolean'],
])('%j is refused at submission', async (tasks, error) => {
  const answer = await control.post({ scope: 'graph', tasks })
  expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
    400,
    expect.stringContaining(error),
  ])
})

test('on_end does not know dynamic', async () => {
  const answer = await control.post({ scope: 'graph', tasks: [noop('a')], on_end: [{ type: 'noop', dynamic: true }] })
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('dynamic')])
})

test('a task that is cancelled adds nothing, and none that fails does', async () => {
  const script = `echo '{"add_tasks": [{"id": "a", "type": "noop"}]}'; `
  const task = (id: string, end: string) => ({ id, type: 'shell', dynamic: true, params: { script: script + end } })
  const id = await submit(control, [task('failed', 'exit 1'), task('long', 'sleep 60')])
  await until(async () => (await read(control, id, 'long')).status, 'running')
  await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
  const graph = await ended(control, id)
  expect([graph.task_count, graph.revision]).toEqual([2, undefined])
})

test('nothing is added twice: not by a retry in place, and a rerun leaves out what is added again', async () => {
  using temp = tempDir()
  const bad = { id: 'bad', type: 'shell', params: { script: `test -e ${temp.path}/fixed` } }
  const late = plan('late', { add_tasks: [noop('x', 'late')] }, { run_if: 'always', depends_on: ['bad'] })
  const wrong = {
    ...{ id: 'wrong', type: 'shell', dynamic: true },
    params: { script: `echo "{\\"add_tasks\\": [{\\"id\\": \\"y\\", \\"type\\": \\"$(cat ${temp.path}/fixed)\\"}]}"` },
  }
  const id = await submit(control, [bad, late, wrong])
  expect(statusesOf(await ended(control, id))).toEqual({
    bad: 'failed',
    late: 'success',
    wrong: 'failed',
    x: 'success',
  })
  writeFileSync(join(temp.path, 'fixed'), 'noop')
  const retried = await control.fetch(`/graphs/${id}/tasks/bad/retry`, { method: 'POST' })
  expect([retried.status, await retried.text()]).toEqual([409, expect.stringContaining('late')])
  expect((await control.fetch(`/graphs/${id}/tasks/wrong/retry`, { method: 'POST' })).status).toBe(202)
  expect(await ended(control, id)).toMatchObject({ task_count: 5, revision: 2 })
  const rerun = await control.fetch(`/graphs/${id}/rerun`, { method: 'POST' })
  const { graph_id, reused, accepted } = (await rerun.json()) as RerunResponse
  expect([accepted, [...reused].sort()]).toEqual([4, ['wrong', 'y']])
  expect(statusesOf(await ended(control, graph_id))).toEqual({
    ...{ bad: 'success', late: 'success', wrong: 'success', x: 'success', y: 'success' },
  })
})

describe('with callers', () => {
  const ALL = {
    boss: { rights: ['read', 'submit', 'cancel', 'answer'] },
    agent: { rights: ['read', 'submit', 'answer'], types: ['os', 'approval'] },
    small: { rights: ['read', 'submit'], live_tasks: 2 },
  } as const
  const tokens = tokensFile(ALL)
  let service: Control
  beforeAll(async () => {
    const env = { ...OPEN.env, SERVICE_TOKEN: 'sesame' }
    service = await startControl({ env, flags: ['--tokens-file', tokens.path] })
  })
  afterAll(async () => {
    await service.dispose()
    tokens[Symbol.dispose]()
  })

  const ask = (name: string, path: string, body?: object, method = 'POST') =>
    service.fetch(path, { method, headers: tokens.as(name), ...(body && { body: JSON.stringify(body) }) })
  const record = async (graph: string, id: string) =>
    (await (await ask('boss', `/graphs/${graph}/tasks/${id}`, undefined, 'GET')).json()) as Awaited<
      ReturnType<typeof read>
    >
  const submitted = async (name: string, ...tasks: object[]) =>
    ((await (await ask(name, '/tasks', { scope: 'graph', tasks })).json()) as { graph_id: string }).graph_id
  const errorOf = async (graph: string, id: string) => {
    await until(async () => (await record(graph, id)).status, 'failed')
    return (await record(graph, id)).runtime?.error
  }

  test('what is added is held to the types and quotas of whoever submitted the graph', async () => {
    const mcp = { add_tasks: [{ id: 'm', type: 'mcp', tool_name: 'echo' }] }
    expect(await errorOf(await submitted('agent', plan('plan', mcp)), 'plan')).toMatchObject({
      code: 'denied',
      message: 'add_tasks: the token agent may not submit tasks of type mcp (only os, approval)',
    })
    const many = { add_tasks: [noop('a', 'plan'), noop('b', 'plan')] }
    expect(await errorOf(await submitted('small', plan('plan', many)), 'plan')).toMatchObject({
      code: 'resource_limit_exceeded',
    })
  })

  test('a dynamic task that another caller has added has no more rights than this one', async () => {
    const graph = await submitted('boss', gate())
    const mcp = { add_tasks: [{ id: 'm', type: 'mcp', tool_name: 'echo' }] }
    tokens.put({ ...ALL, agent: { ...ALL.agent, rights: ['read', 'submit', 'cancel'] } })
    await until(async () => (await ask('agent', `/graphs/${graph}`, { add: [plan('plan', mcp)] }, 'PATCH')).status, 200)
    expect((await errorOf(graph, 'plan'))?.code).toBe('denied')
    tokens.put(ALL)
  })

  test('nobody answers an approval that its own task has added, and a token that is gone adds nothing', async () => {
    const graph = await submitted('agent', plan('plan', { add_tasks: [gate()] }))
    await until(async () => (await record(graph, 'gate')).waiting?.reason, 'approval')
    const answer = (name: string) => ask(name, `/graphs/${graph}/tasks/gate/approve`, { who: 'x' })
    expect((await answer('agent')).status).toBe(403)
    expect((await answer('boss')).status).toBe(200)
    const script = `sleep 1; echo '{"add_tasks": [{"id": "a", "type": "noop"}]}'`
    const late = await submitted('agent', gate(), { id: 'plan', type: 'shell', dynamic: true, params: { script } })
    const { agent: _, ...others } = ALL
    tokens.put(others)
    expect(await errorOf(late, 'plan')).toMatchObject({
      ...{ code: 'denied', message: expect.stringContaining('the token agent') },
    })
  })
})

test('what was added is there after a kill of the service', async () => {
  using dir = tempDir()
  const start = () => startControl({ ...OPEN, dataDir: dir.path })
  await using first = await start()
  const add_tasks = [plan('next', { add_tasks: [noop('last', 'next')] }, { depends_on: ['gate', 'plan'] })]
  const id = await submit(first, [gate(), plan('plan', { add_tasks })])
  await until(async () => (await read(first, id, 'plan')).status, 'success')
  await first.stop('SIGKILL')
  await using second = await start()
  expect(await read(second, id, 'next')).toMatchObject({ status: 'pending', dynamic: true, added_by: 'plan' })
  await until(async () => (await read(second, id, 'gate')).waiting?.reason, 'approval')
  await second.fetch(`/graphs/${id}/tasks/gate/approve`, { method: 'POST', body: '{"who":"ada"}' })
  expect(await ended(second, id)).toMatchObject({ state: 'success', task_count: 4, revision: 2 })
})
