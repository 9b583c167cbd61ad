/**
 * Groups (docs/graphs.md): tasks in place of a task, for each element of a list or once, with dependencies, conditions,
 * clean-up and retries inside.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorResponse, TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { ended, read, statusesOf, submit } from '../support/scoped-graphs.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(() => control.dispose())

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
/** Has any value for a result. */
const says = (id: string, message: unknown, more: object = {}) => ({
  ...{ id, type: 'mcp', tool_name: 'echo', params: { message } },
  ...more,
})
const reads = (id: string, path: unknown, more: object = {}) => ({
  ...{ id, type: 'file', params: { action: 'read', path } },
  ...more,
})
const after = (...depends_on: string[]) => ({ depends_on })

const said = (message: unknown) => ({ tool_name: 'echo', echo: { message } })

describe('a group', () => {
  test('with for_each runs its tasks for each element, which refer to each other and to what the group depends on', async () => {
    const graphId = await submit(control, [
      says('list', ['a', 'b']),
      {
        ...{ id: 'each', ...after('list'), for_each: { $from: 'list', path: '/result/echo/message' } },
        tasks: [
          says(
            'last',
            [
              { $from: 'first', path: '/result/echo/message/0' },
              { $from: 'list', path: '/status' },
            ],
            after('first'),
          ),
          says('first', [{ $item: '' }, { $index: true }]),
        ],
      },
      says('sum', { $from: 'each', path: '/result/*/last/echo/message' }, after('each')),
    ])
    const graph = await ended(control, graphId)
    expect(graph).toMatchObject({ state: 'success', counts: { success: 7 } })
    const ids = ['list', 'each', 'each[0]/first', 'each[0]/last', 'each[1]/first', 'each[1]/last', 'sum']
    expect(graph.tasks.map(({ id }) => id)).toEqual(ids)
    expect(graph.edges).toContainEqual(['each[1]/first', 'each[1]/last'])
    const each = await read(control, graphId, 'each')
    expect(each).toMatchObject({ type: 'group', status: 'success', child_count: 4 })
    expect(each.result).toEqual(
      ['a', 'b'].map((item, i) => ({ first: said([item, i]), last: said([item, 'success']) })),
    )
    expect((await read(control, graphId, 'sum')).result).toEqual(
      said([
        ['a', 'success'],
        ['b', 'success'],
      ]),
    )
    const child = await read(control, graphId, 'each[1]/last')
    expect(child).toMatchObject({ parent: 'each', index: 1, depends_on: ['each[1]/first'] })
    expect(child).not.toContainKeys(['tasks', 'for_each', 'child_count'])
  })

  test('without for_each runs its tasks once, under one name', async () => {
    const graphId = await submit(control, [
      { id: 'each', tasks: [says('build', 1), noop('test', after('build'))] },
      says('next', { $from: 'each', path: '/result/build/echo/message' }, after('each')),
    ])
    const graph = await ended(control, graphId)
    expect(statusesOf(graph)).toEqual({
      each: 'success',
      'each/build': 'success',
      'each/test': 'success',
      next: 'success',
    })
    expect((await read(control, graphId, 'next')).result).toEqual(said(1))
    const child = await read(control, graphId, 'each/test')
    expect(child).toMatchObject({ parent: 'each', depends_on: ['each/build'] })
    expect(child).not.toContainKeys(['index'])
  })

  test('fails with the first task that failed; clean-up, conditions, retries and continue_on_error work inside', async () => {
    writeFileSync(join(control.cwd, 'here'), 'text')
    const tasks = [
      reads('read', { $item: '' }, { retry: 1, backoff: { initial_ms: 1 } }),
      noop('use', after('read')),
      noop('clean', { ...after('use'), run_if: 'always' }),
      noop('only', { ...after('read'), when: { $from: 'read', path: '/status', equals: 'failed' }, run_if: 'always' }),
      reads('may', 'no', { continue_on_error: true }),
      noop('then', after('may')),
    ]
    const graphId = await submit(control, [
      { id: 'each', for_each: ['here', 'no'], tasks },
      noop('skipped', after('each')),
      { id: 'fine', for_each: ['here'], tasks },
    ])
    const graph = await ended(control, graphId)
    // each[1]/use, and what follows the group
    expect(graph).toMatchObject({ state: 'failed', root_cause: { task_id: 'each[1]/read', skipped: 2 } })
    expect(statusesOf(graph)).toMatchObject({
      ...{ each: 'failed', skipped: 'skipped', fine: 'success' },
      ...{ 'each[0]/read': 'success', 'each[0]/use': 'success', 'each[0]/only': 'skipped', 'each[0]/may': 'failed' },
      ...{ 'each[1]/read': 'failed', 'each[1]/use': 'skipped', 'each[1]/clean': 'success', 'each[1]/only': 'success' },
    })
    const each = await read(control, graphId, 'each')
    expect(each.error).toBe('1 of 12 failed: each[1]/read')
    expect((each.result as unknown[])[1]).toMatchObject({ read: null, use: null, clean: { ok: true }, may: null })
    expect(await read(control, graphId, 'each[1]/read')).toMatchObject({ attempt: 2 })
  })

  test('begins at most as many elements as max_parallel, and with fail_fast no more after a failure', async () => {
    const graphId = await submit(control, [
      {
        ...{ id: 'each', for_each: ['no', 'no', 'no'], max_parallel: 1, fail_fast: true },
        tasks: [reads('read', { $item: '' }), noop('clean', { ...after('read'), run_if: 'always' })],
      },
    ])
    expect(statusesOf(await ended(control, graphId))).toEqual({
      ...{ each: 'failed', 'each[0]/read': 'failed', 'each[0]/clean': 'success' },
      ...{ 'each[1]/read': 'cancelled', 'each[1]/clean': 'cancelled' },
      ...{ 'each[2]/read': 'cancelled', 'each[2]/clean': 'cancelled' },
    })
    expect((await read(control, graphId, 'each[2]/clean')).error).toBe(
      'task cancelled: each[0]/read failed (fail_fast)',
    )
  })

  test('says why its tasks wait, and is cancelled with all of them', async () => {
    const graphId = await submit(control, [
      {
        ...{ id: 'each', for_each: [1, 2], max_parallel: 1 },
        tasks: [
          { id: 'work', type: 'sleep', params: { duration_ms: 600_000 } },
          noop('clean', { ...after('work'), run_if: 'always' }),
        ],
      },
    ])
    const waiting = async (id: string) => (await read(control, graphId, id)).waiting
    await until(
      async () => (await control.fetch(`/graphs/${graphId}/tasks/each%5B0%5D%2Fwork`)).json() as Promise<TaskRecord>,
      ({ status }) => status === 'running',
    )
    expect(await waiting('each[0]/clean')).toEqual({ reason: 'dependencies', tasks: ['each[0]/work'] })
    expect(await waiting('each[1]/work')).toEqual({
      ...{ reason: 'concurrency', detail: '1 element of each runs (max_parallel)' },
    })
    await control.fetch(`/graphs/${graphId}/tasks/each/cancel`, { method: 'POST' })
    expect((await ended(control, graphId)).counts).toEqual({ cancelled: 5 })
  })

  test('runs again as a whole, and keeps the values of env to itself', async () => {
    const shell = {
      id: 'work',
      type: 'shell',
      params: { command: 'printenv', args: ['TOKEN'], env: { TOKEN: 'hidden' } },
    }
    const graphId = await submit(control, [{ id: 'each', tasks: [shell, reads('fails', 'no', after('work'))] }])
    await ended(control, graphId)
    const record = await read(control, graphId, 'each')
    expect(JSON.stringify(record.tasks)).toContain('"TOKEN":"***"')
    const response = await control.fetch(`/graphs/${graphId}/rerun`, { method: 'POST' })
    const { graph_id } = (await response.json()) as SubmitResponse
    expect(statusesOf(await ended(control, graph_id))).toMatchObject({ 'each/work': 'success', 'each/fails': 'failed' })
    expect((await read(control, graph_id, 'each/work')).result).toMatchObject({
      stdout: expect.stringContaining('hidden'),
    })
  })
})

describe('refused', () => {
  const group = (...tasks: object[]) => ({ id: 'g', tasks })
  const listed = (...tasks: object[]) => ({ id: 'g', for_each: [1], tasks })
  const item = { message: { $item: '' } }
  const from = (id: string) => says('o', { $from: id }, after('g'))
  const file = (id: string) => ({ program: 'x', inputs: { a: { $from: id, file: 'x' } } })
  const faults: readonly (readonly [text: string, ...tasks: object[]])[] = [
    ['task g: tasks: expected at least one task', group()],
    [
      'task g: a group has no type, params, retry: give them to its tasks',
      { ...group(noop('a')), type: 'noop', params: {}, retry: 1 },
    ],
    ['task g: type group means nothing without tasks', { id: 'g', type: 'group' }],
    [
      'task g/h: a group in a group is not possible: make it a task of the graph',
      group({ id: 'h', tasks: [noop('a')] }),
    ],
    ['task g/a: for_each is not possible in a group: give it to the group', group(noop('a', { for_each: [1] }))],
    ['task g: the id a/b of a task in a group must not have "/", "[" or "]"', group(noop('a/b'))],
    ['task g: tasks: cycle detected in task graph: a -> b -> a', group(noop('a', after('b')), noop('b', after('a')))],
    ['task g: tasks: task a depends on unknown task x', group(noop('a', after('x'))), noop('x')],
    ['task g: tasks: duplicate task id: a', group(noop('a'), noop('a'))],
    ['task g: tasks: task a: type is required', group({ id: 'a' })],
    ['invalid JSON: tasks[0].tasks[1].type: expected string', group(noop('a'), { id: 'b', type: 3 })],
    ['invalid JSON: tasks[0].tasks: expected array of tasks', { id: 'g', tasks: {} }],
    ['unknown field "needs" in task g/a (did you mean "depends_on"?)', group(noop('a', { needs: [] }))],
    ['task g: max_parallel means nothing without for_each', { ...group(noop('a')), max_parallel: 2 }],
    ['task id g/a is reserved for a task of the group g', group(noop('a')), noop('g/a')],
    ['task id g[3]/a is reserved for a task of the group g', listed(noop('a')), noop('g[3]/a')],
    [
      'task g/a: params.message: $item means something only in a task with for_each',
      group({ ...says('a', 1), params: item }),
    ],
    ['task g/a references o but does not depend on it', group(says('a', { $from: 'o' })), noop('o')],
    [
      'task g/b references g/a but does not depend on it (it is in the group g: use {"$from": "g", "path": "/result/a"})',
      group(noop('a'), says('b', { $from: 'a' })),
    ],
    [
      'task o references g/a but does not depend on it (it is in the group g: use {"$from": "g", "path": "/result/a"})',
      group(noop('a')),
      from('g/a'),
    ],
    [
      'task o references unknown task g[2]/a (it is in the group g: use {"$from": "g", "path": "/result/2/a"})',
      listed(noop('a')),
      from('g[2]/a'),
    ],
    [
      'task o takes files of the group g: take them in a task of that group',
      group(noop('a')),
      { id: 'o', type: 'runtime.command', ...after('g'), params: file('g') },
    ],
  ]
  let runtime: Runtime
  let runtimed: Control
  beforeAll(async () => {
    runtime = await startRuntime()
    runtimed = await startControl({ flags: ['--runtime-url', runtime.url] })
  })
  afterAll(async () => {
    await runtimed.dispose()
    await runtime[Symbol.asyncDispose]()
  })

  test.each(faults)('%s', async (text, ...tasks) => {
    const response = await runtimed.post({ tasks, scope: 'graph' })
    expect([response.status, ((await response.json()) as ErrorResponse).error]).toEqual([400, text])
  })

  test('by a dry run, with all other faults', async () => {
    const tasks = [group(noop('a', after('x')), noop('a/b')), { id: 'h', retry: 1, tasks: [says('a', { $from: 'x' })] }]
    const response = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify({ tasks }) })
    const { errors } = (await response.json()) as GraphDryRun
    expect(errors.map(({ message }) => message)).toEqual([
      'task g: the id a/b of a task in a group must not have "/", "[" or "]"',
      'task h: a group has no retry: give them to its tasks',
      'task h/a references unknown task x',
    ])
  })
})

describe('in the order of a graph', () => {
  const sleep = (id: string, duration_ms: unknown, more: object = {}) => ({
    ...{ id, type: 'sleep', params: { duration_ms } },
    ...more,
  })

  test('a dry run counts the tasks of groups, per element if their list is not known', async () => {
    const steps = [noop('a'), noop('b', after('a'))]
    const tasks = [
      noop('first'),
      { id: 'once', ...after('first'), tasks: steps },
      { id: 'each', ...after('first'), for_each: [1, 2], tasks: steps },
      { id: 'any', ...after('first'), for_each: { $from: 'first', path: '/result' }, tasks: [noop('c')] },
      noop('last', after('once', 'each', 'any')),
    ]
    const response = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify({ tasks }) })
    const { waves, critical_path } = (await response.json()) as GraphDryRun
    expect(waves).toEqual([
      ['first'],
      ['once/a', 'each[0]/a', 'each[1]/a', 'any[*]/c'],
      ['once/b', 'each[0]/b', 'each[1]/b'],
      ['last'],
    ])
    expect(critical_path).toEqual(['first', 'once/a', 'once/b', 'last'])
  })

  test('the critical path leads through the element that took the longest, or over a group whose elements wait', async () => {
    const work = { for_each: [1, 150], tasks: [sleep('work', { $item: '' }), sleep('done', 2, after('work'))] }
    const graphId = await submit(control, [
      noop('first'),
      { id: 'each', ...after('first'), ...work },
      sleep('last', 2, after('each')),
    ])
    const { critical_path, tasks } = await ended(control, graphId)
    expect(critical_path.task_ids).toEqual(['first', 'each[1]/work', 'each[1]/done', 'last'])
    const durationOf = (id: string) => tasks.find((task) => task.id === id)!.duration_ms!
    const durations = critical_path.task_ids.map(durationOf)
    expect(critical_path.duration_ms).toBe(durations.reduce((sum, ms) => sum + ms))
    const waiting = await ended(control, await submit(control, [{ id: 'each', max_parallel: 1, ...work }]))
    expect(waiting.critical_path.task_ids).toEqual(['each'])
  })
})

test('goes on after a kill where it was: nothing that ended runs again', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '10ms'] }
  const tasks = [
    says('first', { $item: '' }),
    { id: 'work', type: 'sleep', ...after('first'), params: { duration_ms: { $item: '' } } },
    noop('clean', { ...after('work'), run_if: 'always' }),
  ]
  let graphId: string
  {
    await using control = await startControl(options)
    graphId = await submit(control, [
      {
        id: 'each',
        for_each: { $from: 'list', path: '/result/echo/message' },
        ...after('list'),
        max_parallel: 1,
        tasks,
      },
      says('list', [0, 600_000, 1]),
    ])
    await until(
      async () => (await control.fetch(`/graphs/${graphId}/tasks/each%5B1%5D%2Fwork`)).json() as Promise<TaskRecord>,
      ({ status }) => status === 'running',
    )
    control.process.kill('SIGKILL')
    await control.process.exited
  }
  await using next = await startControl(options)
  await until(
    async () => (await next.fetch(`/graphs/${graphId}/tasks/each%5B1%5D%2Fwork`)).json() as Promise<TaskRecord>,
    ({ status }) => status === 'running',
  )
  expect(await read(next, graphId, 'each[0]/work')).toMatchObject({ status: 'success', attempt: 1 })
  expect(await read(next, graphId, 'each[1]/first')).toMatchObject({ status: 'success', attempt: 1 })
  expect(await read(next, graphId, 'each[2]/first')).toMatchObject({ status: 'pending' })
  await next.fetch(`/graphs/${graphId}/tasks/each%5B1%5D%2Fwork/cancel`, { method: 'POST' })
  const graph = await ended(next, graphId)
  expect(statusesOf(graph)).toMatchObject({
    ...{ each: 'failed', 'each[1]/work': 'cancelled', 'each[1]/clean': 'success', 'each[2]/clean': 'success' },
  })
  expect((await read(next, graphId, 'each')).error).toBe('1 of 9 cancelled: each[1]/work')
})
