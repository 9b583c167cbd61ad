/** Which tasks of a graph run (docs/graphs.md): the fields, what comes of graphs, over restarts and through every door. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { ErrorResponse, TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { GraphModel, type ModelTask } from '../model/graph-model.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { randomGraph } from '../support/random-graph.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const fails = (id: string, more: object = {}) => ({
  ...{ id, type: 'file', params: { action: 'read', path: '/no/such/file' } },
  ...more,
})
const sleeps = (id: string, more: object = {}) => ({ id, type: 'sleep', params: { duration_ms: 60_000 }, ...more })
const after = (...depends_on: string[]) => ({ depends_on })

async function ended(control: Control, graphId: string): Promise<GraphDetails> {
  for (;;) {
    const graph = (await (await control.fetch(`/graphs/${graphId}?wait_ms=20000`)).json()) as GraphDetails
    if (graph.state !== 'running') return graph
  }
}

const endsOf = ({ tasks }: Pick<GraphDetails, 'tasks'>) =>
  Object.fromEntries(tasks.map(({ id, status, error }) => [id, error === undefined ? status : `${status}: ${error}`]))

describe('the fields', () => {
  test('are checked, shown in records, and null is absent', async () => {
    const refusal = async (more: object) => {
      const response = await control.post({ tasks: [noop('a', more)] })
      return [response.status, ((await response.json()) as ErrorResponse).error]
    }
    expect(await refusal({ run_if: 'sometimes' })).toEqual([
      400,
      'invalid JSON: tasks[0].run_if: expected "success", "failed", "always"',
    ])
    expect(await refusal({ continue_on_error: 'yes' })).toEqual([
      400,
      'invalid JSON: tasks[0].continue_on_error: expected boolean',
    ])
    expect(await refusal({ allow_failure: true })).toEqual([
      400,
      'unknown field "allow_failure" in task a (did you mean "continue_on_error"?)',
    ])
    await control.submit([
      noop('a', { run_if: null, continue_on_error: null }),
      noop('b', { run_if: 'always', continue_on_error: false, ...after('a') }),
    ])
    expect(await control.ended('a')).not.toContainKeys(['run_if', 'continue_on_error'])
    const record = await control.ended('b')
    expect(record).toMatchObject({ status: 'success', run_if: 'always', continue_on_error: false })
    // A record may be submitted again.
    expect((await control.post({ tasks: [noop('a'), record] })).status).toBe(202)
  })

  test('are taken by the MCP tool submit_graph', async () => {
    await using mcp = await connectClient(control.url)
    const tasks = [fails('a', { continue_on_error: true }), noop('b', after('a'))]
    const { data } = await mcp.call('submit_graph', { tasks, scope: 'graph', wait_ms: 20_000 })
    const graph = await ended(control, data.graph_id as string)
    expect([graph.state, graph.counts]).toEqual(['success', { failed: 1, success: 1 }])
  })
})

test('what a graph amounts to is the same in lists, events, waits and exit codes', async () => {
  await using control = await startControl()
  const { graph_id } = await control.submit([
    fails('optional', { continue_on_error: true }),
    noop('handler', { ...after('optional'), run_if: 'failed' }),
    noop('main', after('optional', 'handler')),
    noop('none', after('handler')),
  ])
  const graph = await ended(control, graph_id)
  expect(graph.state).toBe('success')
  expect(graph.root_cause).toBeUndefined()
  expect(endsOf(graph)).toMatchObject({
    handler: 'skipped: no dependency failed',
    main: 'success',
    none: 'skipped: dependency handler skipped',
  })
  const listed = await (await control.fetch('/graphs?state=success')).json()
  expect(listed).toMatchObject([{ graph_id, state: 'success' }])
  const stream = await (await control.fetch(`/graphs/${graph_id}/events?after=0&until=ended`)).text()
  expect(stream).toMatch(/event: graph_ended\ndata: .*"state":"success"/)
  for (const args of [
    ['wait', graph_id, '--fail'],
    ['wait', 'optional', 'handler', '--fail'],
    ['watch', graph_id],
  ]) {
    expect([args[0], (await runClient(args, { url: control.url })).exitCode]).toEqual([args[0], 0])
  }
})

test('a clean-up waits for all, runs after a cancelled task, and not in a cancelled graph', async () => {
  const tasks = [
    sleeps('work'),
    noop('next', after('work')),
    noop('handler', { ...after('work'), run_if: 'failed' }),
    noop('clean', { ...after('work', 'next'), run_if: 'always' }),
  ]
  const first = await control.submit(tasks)
  await control.reached('work', 'running')
  expect((await control.get('clean')).waiting).toEqual({ reason: 'dependencies', tasks: ['work', 'next'] })
  await control.fetch('/tasks/work/cancel', { method: 'POST' })
  const graph = await ended(control, first.graph_id)
  expect([graph.state, endsOf(graph)]).toEqual([
    'cancelled',
    {
      work: 'cancelled: task cancelled',
      next: 'skipped: dependency work cancelled',
      handler: 'skipped: dependency work cancelled',
      clean: 'success',
    },
  ])

  const second = await control.submit(tasks)
  await control.reached('work', 'running')
  await control.fetch(`/graphs/${second.graph_id}/cancel`, { method: 'POST' })
  const cancelled = await ended(control, second.graph_id)
  expect(cancelled.counts).toEqual({ cancelled: 4 })
})

test('a restart decides as before, from the journal and from the state file', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const ids: string[] = []
  {
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '1h'] })
    const { graph_id } = await control.submit([
      fails('optional', { continue_on_error: true }),
      noop('handler', { ...after('optional'), run_if: 'failed' }),
      sleeps('work', after('optional')),
      noop('after-handler', after('handler', 'work')),
      noop('after-optional', after('optional', 'work')),
      noop('clean', { ...after('work', 'handler'), run_if: 'always' }),
    ])
    ids.push(graph_id)
    await control.reached('work', 'running')
    await control.reached('handler', 'skipped')
    // Their outcomes decide about others, which wait for the work.
    for (const id of ['optional', 'handler'])
      expect((await control.fetch(`/tasks/${id}`, { method: 'DELETE' })).status).toBe(204)
    await control.stop('SIGKILL')
  }
  for (const interval of ['20ms', '1h']) {
    await using control = await startControl({ dataDir, flags: ['--persist-interval', interval] })
    await control.reached('work', 'running')
    for (const id of ['after-handler', 'after-optional', 'clean'])
      expect((await control.get(id)).status).toBe('pending')
    // The last life finds a state file without the deleted tasks.
    await until(() => existsSync(join(dataDir, 'state.json')))
    await control.stop('SIGKILL')
  }
  await using control = await startControl({ dataDir })
  await control.reached('work', 'running')
  await control.fetch('/tasks/work/cancel', { method: 'POST' })
  const graph = await ended(control, ids[0]!)
  expect(endsOf(graph)).toEqual({
    work: 'cancelled: task cancelled',
    'after-handler': 'skipped: dependency work cancelled',
    'after-optional': 'skipped: dependency work cancelled',
    clean: 'success',
  })
})

describe('a condition', () => {
  const choose = (text: string) => ({ id: 'choose', type: 'shell', params: { command: 'echo', args: ['-n', text] } })
  const on = (test: object, path = '/result/stdout') => ({
    ...after('choose'),
    when: { $from: 'choose', path, ...test },
  })

  test('picks a branch, and what follows both runs after the one that was taken', async () => {
    const { graph_id } = await control.submit([
      choose('yes'),
      noop('yes', on({ equals: 'yes' })),
      noop('no', on({ not: 'yes' })),
      noop('join', after('yes', 'no')),
      noop('of-no', after('no')),
      fails('maybe', { ...on({ in: ['failed', 'success'] }, '/status'), continue_on_error: true }),
      noop('odd', { ...after('maybe'), run_if: 'always', when: { $from: 'maybe', path: '/status', matches: 'f?il*' } }),
    ])
    const graph = await ended(control, graph_id)
    expect(graph.state).toBe('success')
    expect(endsOf(graph)).toMatchObject({
      yes: 'success',
      no: 'skipped: condition not met: choose/result/stdout',
      join: 'success',
      'of-no': 'skipped: dependency no skipped',
      odd: 'success',
    })
    expect((await control.get('no')).when).toEqual({ $from: 'choose', path: '/result/stdout', not: 'yes' })
    expect((await runClient(['watch', graph_id], { url: control.url })).exitCode).toBe(0)
  })

  test('is refused where it names no ancestor, or is malformed', async () => {
    const refusal = async (when: unknown) => {
      const response = await control.post({ tasks: [noop('a'), noop('c'), noop('b', { ...after('a'), when })] })
      return [response.status, ((await response.json()) as ErrorResponse).error]
    }
    expect(await refusal({ $from: 'x', equals: 1 })).toEqual([400, 'task b references unknown task x'])
    expect(await refusal({ $from: 'c', equals: 1 })).toEqual([400, 'task b references c but does not depend on it'])
    expect(await refusal({ $from: 'a' })).toEqual([
      400,
      'task b: when: expected exactly one of equals, not, in, matches',
    ])
    expect(await refusal({ equals: 1 })).toEqual([
      400,
      'invalid JSON: tasks[2].when: expected object with $from, and one of equals, not, in, matches',
    ])
    expect(await refusal('a')).toEqual([
      400,
      'invalid JSON: tasks[2].when: expected object with $from, and one of equals, not, in, matches',
    ])
  })

  test('that cannot be tested fails the task at once', async () => {
    const { graph_id } = await control.submit([
      choose('yes'),
      noop('missing', { ...on({ equals: 1 }, '/result/none'), retry: 3 }),
      noop('default', on({ equals: null, default: null }, '/result/none')),
      noop('number', on({ matches: '*' }, '/result/exit_code')),
      sleeps('slow'),
      fails('quick'),
      noop('lost', after('slow', 'quick')),
      noop('early', {
        ...after('lost'),
        run_if: 'always',
        when: { $from: 'slow', path: '/status', equals: 'success' },
      }),
    ])
    expect(await control.ended('missing')).toMatchObject({
      ...{ status: 'failed', attempt: 1, error: 'when: task choose has no /result/none, and there is no default' },
      runtime: { error: { code: 'invalid_input' } },
    })
    expect((await control.ended('default')).status).toBe('success')
    expect((await control.ended('number')).error).toBe('when.matches: /result/exit_code of task choose is no text')
    expect((await control.ended('early')).error).toBe('task early references slow, which has not ended')
    await control.fetch(`/graphs/${graph_id}/cancel`, { method: 'POST' })
  })

  test('that was met holds after a kill', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const message = (glob: string) => ({ $from: 'choose', path: '/result/message', matches: glob })
    const last = { ...after('choose', 'work'), run_if: 'always' }
    {
      await using control = await startControl({ dataDir })
      await control.submit([
        { id: 'choose', type: 'noop', params: { message: `${'x'.repeat(100_000)}end` } },
        sleeps('work'),
        noop('end', { ...last, when: message('*xend') }),
        noop('none', { ...last, when: message('*xxx') }),
        sleeps('met', { ...after('choose'), when: { $from: 'choose', path: '/status', equals: 'success' } }),
      ])
      await control.reached('met', 'running')
      await control.stop('SIGKILL')
    }
    await using control = await startControl({ dataDir })
    await control.reached('work', 'running')
    // Its condition was met before the kill, and is not tested again.
    expect((await control.fetch('/tasks/choose', { method: 'DELETE' })).status).toBe(204)
    await control.reached('met', 'running')
    for (const id of ['work', 'met']) await control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })
    expect((await control.ended('end')).error).toBe('task end references choose, which was deleted')
  })

  test.each([
    ['journal', '1h'],
    ['state file', '20ms'],
  ])('that was met holds for a task that waits for a slot: %s', async (source, interval) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const options = { dataDir, flags: ['--max-concurrency', '1', '--persist-interval', interval] }
    const stateFile = join(dataDir, 'state.json')
    const isStored = () => existsSync(stateFile) && readFileSync(stateFile, 'utf8').includes('"condition_met":true')
    const met = { ...after('choose'), when: { $from: 'choose', path: '/status', equals: 'success' } }
    /** One of the two runs, and the other one waits for its slot. */
    const runningOf = async (control: Control) => {
      const both = () => Promise.all([control.get('one'), control.get('two')])
      const isSplit = (tasks: TaskRecord[]) =>
        tasks.some(({ status }) => status === 'running') &&
        tasks.some(({ waiting }) => waiting?.reason === 'concurrency')
      return (await until(both, isSplit)).find(({ status }) => status === 'running')!.id
    }
    {
      await using control = await startControl(options)
      await control.submit([noop('choose'), sleeps('one', met), sleeps('two', met)])
      await runningOf(control)
      expect((await control.fetch('/tasks/choose', { method: 'DELETE' })).status).toBe(204)
      if (source === 'state file') await until(isStored, (is) => is)
      await control.stop('SIGKILL')
    }
    {
      await using control = await startControl(options)
      await runningOf(control)
      await control.stop('SIGKILL')
    }
    await using control = await startControl(options)
    const first = await runningOf(control)
    await control.fetch(`/tasks/${first}/cancel`, { method: 'POST' })
    await control.reached(first === 'one' ? 'two' : 'one', 'running')
  })

  test('reads a result that is in a file', async () => {
    const message = (glob: string) => ({ $from: 'choose', path: '/result/message', matches: glob })
    await control.submit([
      { id: 'choose', type: 'noop', params: { message: `${'x'.repeat(100_000)}end` } },
      noop('end', { ...after('choose'), when: message('*xend') }),
      noop('none', { ...after('choose'), when: message('*xxx') }),
    ])
    expect((await control.ended('end')).status).toBe('success')
    expect((await control.ended('none')).error).toBe('condition not met: choose/result/message')
  })
})

test('random graphs end as the model does', async () => {
  const rule = fc.record(
    { run_if: fc.constantFrom('success', 'failed', 'always'), continue_on_error: fc.boolean() },
    { requiredKeys: [] },
  )
  const graphs = fc.tuple(
    randomGraph({ type: 'noop', maxTasks: 12 }),
    fc.array(fc.tuple(fc.boolean(), rule), { minLength: 12, maxLength: 12 }),
  )
  await fc.assert(
    fc.asyncProperty(graphs, async ([tasks, more]) => {
      const failing = new Set(tasks.filter((_, i) => more[i]![0]).map(({ id }) => id))
      const ruled = tasks.map((task, i) => ({ ...task, ...more[i]![1] }) as ModelTask & { id: string })
      const sent = ruled.map((task) => (failing.has(task.id) ? fails(task.id, { ...task, type: 'file' }) : task))
      const response = await control.post({ tasks: sent, scope: 'graph' })
      expect(response.status).toBe(202)
      const { graph_id } = (await response.json()) as { graph_id: string }
      const { state } = await ended(control, graph_id)
      const records = (await (await control.fetch(`/graphs/${graph_id}/tasks`)).json()) as TaskRecord[]
      const model = GraphModel.run(ruled, (id) => (failing.has(id) ? 'failed' : 'success'))
      expect(model.faults).toEqual([])
      expect(records.map(({ id, status }) => [id, status as string])).toEqual(
        ruled.map(({ id }) => [id, model.stateOf(id)]),
      )
      expect(state as string).toBe(model.state)
    }),
    { numRuns: 40 },
  )
})
