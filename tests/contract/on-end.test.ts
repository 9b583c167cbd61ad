/** What a graph does at its end (`on_end`, docs/graphs.md): when entries run, what they are told, over cancels, kills and reruns. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { ErrorResponse, TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { MAX_ON_END } from '../../shared/contract/on-end.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
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
const says = (...args: unknown[]) => ({ command: { command: 'echo', args: ['-n', ...args] } })
const value = ($graph: string, more: object = {}) => ({ $graph, as: 'text', ...more })

/** One entry for each state. Each says which state that was. */
const EACH = ['always', 'success', 'failed', 'cancelled'].map((when) => ({ when, ...says(value('/state')) }))

async function submit(control: Control, tasks: readonly object[], on_end: unknown, more: object = {}): Promise<string> {
  const response = await control.post({ tasks, on_end, scope: 'graph', ...more })
  const answer = (await response.json()) as { graph_id: string }
  if (response.status !== 202) throw new Error(`not accepted: ${JSON.stringify(answer)}`)
  return answer.graph_id
}

async function ended(control: Control, graphId: string): Promise<GraphDetails> {
  for (;;) {
    const graph = (await (await control.fetch(`/graphs/${graphId}?wait_ms=20000`)).json()) as GraphDetails
    if (graph.state !== 'running') return graph
  }
}

const record = async (control: Control, graphId: string, id: string): Promise<TaskRecord> =>
  (await (await control.fetch(`/graphs/${graphId}/tasks/${encodeURIComponent(id)}`)).json()) as TaskRecord

const reached = (control: Control, graphId: string, id: string, status: string) =>
  until(
    () => record(control, graphId, id),
    (task) => task.status === status,
  )

const statuses = ({ tasks }: Pick<GraphDetails, 'tasks'>) =>
  Object.fromEntries(tasks.map(({ id, status, error }) => [id, error === undefined ? status : `${status}: ${error}`]))

const saidBy = async (control: Control, graphId: string, id: string) =>
  ((await record(control, graphId, id)).result as { readonly stdout?: string } | undefined)?.stdout

const cancel = (control: Control, graphId: string) => control.fetch(`/graphs/${graphId}/cancel`, { method: 'POST' })

describe('an entry runs in its state', () => {
  const skipped = (state: string) => `skipped: condition not met: the graph ended as ${state}`

  test.each([
    ['success', [noop('a')], ['success', 'success', skipped('success'), skipped('success')]],
    ['failed', [fails('a'), noop('b', after('a'))], ['success', skipped('failed'), 'success', skipped('failed')]],
    [
      'success',
      [fails('a', { continue_on_error: true })],
      ['success', 'success', skipped('success'), skipped('success')],
    ],
  ])('%s', async (state, tasks, ends) => {
    const id = await submit(control, tasks, EACH)
    const graph = await ended(control, id)
    expect(graph.state).toBe(state as GraphDetails['state'])
    expect(statuses(graph)).toMatchObject(Object.fromEntries(ends.map((end, i) => [`on_end/${i}`, end])))
    expect(await saidBy(control, id, 'on_end/0')).toBe(state)
  })

  test('cancelled, as a cancel of the graph leaves it, and a second cancel ends it', async () => {
    const id = await submit(
      control,
      [sleeps('a'), noop('clean', { ...after('a'), run_if: 'always' })],
      [...EACH, { type: 'sleep', params: { duration_ms: 60_000 } }],
    )
    expect((await record(control, id, 'on_end/0')).waiting).toEqual({
      ...{ reason: 'dependencies', detail: 'all other tasks of its graph have to end first' },
    })
    const answer = await (await cancel(control, id)).json()
    expect(answer).toMatchObject({ state: 'running' })
    await reached(control, id, 'on_end/4', 'running')
    for (const i of [0, 3]) await reached(control, id, `on_end/${i}`, 'success')
    expect(await (await cancel(control, id)).json()).toMatchObject({ tasks: [{ task_id: 'on_end/4' }] })
    const graph = await ended(control, id)
    expect([graph.state, statuses(graph)]).toEqual([
      'cancelled',
      {
        ...{ a: 'cancelled: task cancelled', clean: 'cancelled: task cancelled' },
        ...{ 'on_end/0': 'success', 'on_end/1': skipped('cancelled'), 'on_end/2': skipped('cancelled') },
        ...{ 'on_end/3': 'success', 'on_end/4': 'cancelled: task cancelled' },
      },
    ])
    expect(await saidBy(control, id, 'on_end/3')).toBe('cancelled')
  })

  test('after all others, a failed clean-up and the children of a list too, and never before', async () => {
    const id = await submit(
      control,
      [
        { ...noop('map'), for_each: [1, 2, 3], type: 'sleep', params: { duration_ms: 30 } },
        fails('early'),
        noop('lost', after('early', 'map')),
        fails('clean', { ...after('map', 'lost'), run_if: 'always' }),
      ],
      [{ when: 'failed', ...says('x') }],
    )
    const graph = await ended(control, id)
    const [last] = graph.tasks.filter(({ id }) => id === 'on_end/0')
    const others = graph.tasks.filter(({ id }) => id !== 'on_end/0')
    expect([others.length, last!.status]).toEqual([7, 'success'])
    const latest = others
      .map(({ finished_at }) => finished_at!)
      .sort()
      .at(-1)!
    expect(last!.started_at! >= latest).toBeTrue()
  })

  test('and how it ends changes nothing about the graph', async () => {
    const graph = await ended(
      control,
      await submit(
        control,
        [noop('a')],
        [{ http: { url: 'http://127.0.0.1:1/' }, retry: 1, backoff: { initial_ms: 1 } }],
      ),
    )
    expect([graph.state, graph.root_cause, graph.counts]).toEqual(['success', undefined, { success: 1, failed: 1 }])
    expect(graph.tasks.at(-1)).toMatchObject({ id: 'on_end/0', attempt: 2 })
    const id = await submit(control, [noop('a')], [{ type: 'sleep', params: { duration_ms: 60_000 } }])
    await reached(control, id, 'on_end/0', 'running')
    await control.fetch(`/graphs/${id}/tasks/on_end%2F0/cancel`, { method: 'POST' })
    const { state, counts } = await ended(control, id)
    expect([state, counts]).toEqual(['success', { success: 1, cancelled: 1 }])
  })

  test('also if the last of the others was deleted before it ran', async () => {
    const id = await submit(control, [noop('a', { not_before: 600_000 })], [says(value('/state'))])
    expect((await control.fetch(`/graphs/${id}/tasks/a`, { method: 'DELETE' })).status).toBe(204)
    expect((await ended(control, id)).state).toBe('success')
    expect(await saidBy(control, id, 'on_end/0')).toBe('success')
  })

  test('at once in a graph that is cancelled before its not_before', async () => {
    const id = await submit(control, [noop('a')], [{ when: 'cancelled', ...says('x') }], { not_before: 600_000 })
    await cancel(control, id)
    expect(statuses(await ended(control, id))).toEqual({ a: 'cancelled: task cancelled', 'on_end/0': 'success' })
  })
})

test('an entry is told of the graph, and of its tasks', async () => {
  const id = await submit(
    control,
    [fails('a'), noop('b', after('a')), noop('fine', { params: { message: 'hi' } })],
    [
      says(value(''), value('/root_cause/task_id'), value('/none', { default: 'nothing' })),
      says({ $from: 'fine', path: '/result/message' }, { $from: 'a', path: '/error' }, { $param: 'who' }),
      says(value('/none')),
    ],
    { name: 'nightly', labels: { of: 'us' }, params: { who: 'me' } },
  )
  await ended(control, id)
  const { resolved_input } = await record(control, id, 'on_end/0')
  const [, whole, cause, none] = (resolved_input as { args: string[] }).args
  expect([cause, none]).toEqual(['a', 'nothing'])
  expect(JSON.parse(whole!)).toMatchObject({
    ...{ graph_id: id, name: 'nightly', labels: { of: 'us' }, state: 'failed', task_count: 3 },
    counts: { failed: 1, skipped: 1, success: 1 },
    root_cause: { task_id: 'a', error: expect.stringContaining('/no/such/file'), try_next: expect.any(Array) },
    ...{ finished_at: expect.any(String), duration_ms: expect.any(Number) },
  })
  expect(await saidBy(control, id, 'on_end/1')).toMatch(/^hi .*\/no\/such\/file.* me$/s)
  expect((await record(control, id, 'on_end/2')).error).toBe(
    'params.args[1]: the graph has no /none, and there is no default',
  )
})

test('what is refused names the field', async () => {
  const refusal = async (on_end: unknown, more: object = {}) => {
    const response = await control.post({ tasks: [noop('a')], scope: 'graph', on_end, ...more })
    const { error } = (await response.json()) as ErrorResponse
    return response.status === 400 ? error : `${response.status}: ${error}`
  }
  const http = { url: 'http://127.0.0.1:1/' }
  expect(await refusal({})).toBe(
    `invalid JSON: on_end: expected array of at most ${MAX_ON_END} objects, each with one of http, command and type`,
  )
  expect(await refusal(Array.from({ length: MAX_ON_END + 1 }, () => ({ http })))).toContain(
    'on_end: expected array of at most',
  )
  expect(await refusal([{ when: 'never', http }])).toBe(
    'invalid JSON: on_end[0].when: expected "always", "success", "failed", "cancelled"',
  )
  expect(await refusal([{ http }, { when: 'failed' }])).toBe(
    'invalid JSON: on_end[1]: expected exactly one of http, command, type',
  )
  expect(await refusal([{ http, params: {} }])).toBe('invalid JSON: on_end[0].params: expected only beside type')
  expect(await refusal([{ http, retri: 3 }])).toBe(
    'invalid JSON: on_end[0]: unknown field "retri" (did you mean "retry"?)',
  )
  expect(await refusal([{ http: { ...http, urk: 1 } }])).toContain('unknown parameter "urk"')
  expect(await refusal([{ type: 'nope' }])).toContain('unknown task type: nope')
  expect(await refusal([{ http }], { scope: null })).toBe(
    'on_end: expected "scope": "graph" beside it, because it adds tasks with ids of the graph',
  )
  expect(await refusal([{ http }], { tasks: [noop('on_end/0')] })).toBe('duplicate task id: on_end/0')
  expect(await refusal([{ http }], { tasks: [noop('a', after('on_end/0'))] })).toBe(
    'task a depends on on_end/0, which waits for the end of all other tasks',
  )
  expect(await refusal([{ http: { url: { $graph: 'state' } } }])).toContain('$graph: ')
  expect(await refusal([{ http }], { tasks: [noop('a', { params: { message: { $graph: '/state' } } })] })).toBe(
    'task a: params.message: $graph means something only in on_end',
  )
  expect(await refusal([{ http }, says({ $from: 'on_end/0' })])).toContain(
    'references on_end/0 but does not depend on it',
  )
  expect(await refusal([says({ $from: 'x' })])).toContain('references unknown task x')
  expect(await refusal([])).toBe('202: undefined')
})

test('a dry run shows the entries in a wave of their own, and not on the critical path', async () => {
  const response = await control.post({}, {})
  expect(response.status).toBe(400)
  const plan = await (
    await control.fetch('/tasks?dry_run=true', {
      method: 'POST',
      body: JSON.stringify({ tasks: [noop('a'), noop('b', after('a'))], scope: 'graph', on_end: EACH.slice(0, 2) }),
    })
  ).json()
  expect(plan).toMatchObject({
    valid: true,
    waves: [['a'], ['b'], ['on_end/0', 'on_end/1']],
    critical_path: ['a', 'b'],
  })
})

test('an entry waits for the place of its graph, as all of it does', async () => {
  const group = { concurrency: { group: crypto.randomUUID(), limit: 1 } }
  const first = await submit(control, [sleeps('a')], [], group)
  const second = await submit(control, [noop('a')], [says(value('/state'))], group)
  await cancel(control, second)
  expect((await record(control, second, 'on_end/0')).waiting?.reason).toBe('group')
  await cancel(control, first)
  await ended(control, second)
  expect(await saidBy(control, second, 'on_end/0')).toBe('cancelled')
})

test('a rerun has its entries anew, whatever became of the earlier ones', async () => {
  const id = await submit(control, [noop('a'), fails('b')], [says(value('/graph_id'))])
  await ended(control, id)
  const rerun = async (body: object) => {
    const response = await control.fetch(`/graphs/${id}/rerun`, { method: 'POST', body: JSON.stringify(body) })
    return {
      status: response.status,
      ...((await response.json()) as { graph_id: string; error?: string; reused: string[] }),
    }
  }
  expect((await rerun({ from: ['on_end/0'] })).error).toBe(
    `task on_end/0 of graph ${id} runs at the end of each run: do not name it`,
  )
  const again = await rerun({})
  expect(again.reused).toEqual(['a'])
  await ended(control, again.graph_id)
  expect(await saidBy(control, again.graph_id, 'on_end/0')).toBe(again.graph_id)
})

test('the MCP tool submit_graph takes it', async () => {
  await using mcp = await connectClient(control.url)
  const { data } = await mcp.call('submit_graph', {
    tasks: [noop('a')],
    scope: 'graph',
    on_end: EACH.slice(0, 1),
    wait_ms: 20_000,
  })
  expect((await ended(control, data.graph_id as string)).counts).toEqual({ success: 2 })
})

test('a kill at any point leaves each entry its one decision, from the journal and from packs', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const mark = join(dir.path, 'mark')
  const env = { SERVICE_SHELL_POLICY: 'open' }
  const on_end = [
    { command: { command: 'sh', args: ['-c', `printf %s "$0" >> ${mark}`, value('/state')] } },
    { type: 'sleep', params: { duration_ms: 60_000 } },
  ]
  let id: string
  {
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '1h'], env })
    id = await submit(control, [sleeps('work'), noop('a')], on_end)
    await reached(control, id, 'work', 'running')
    await control.stop('SIGKILL')
  }
  {
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '20ms'], env })
    expect((await record(control, id, 'on_end/0')).status).toBe('pending')
    await cancel(control, id)
    await reached(control, id, 'on_end/1', 'running')
    await reached(control, id, 'on_end/0', 'success')
    await control.stop('SIGKILL')
  }
  await using control = await startControl({ dataDir })
  await reached(control, id, 'on_end/1', 'running')
  await cancel(control, id)
  const graph = await ended(control, id)
  expect([graph.state, statuses(graph)]).toEqual([
    'cancelled',
    {
      ...{ work: 'cancelled: task cancelled', a: 'success' },
      ...{ 'on_end/0': 'success', 'on_end/1': 'cancelled: task cancelled' },
    },
  ])
  expect(await Bun.file(mark).text()).toBe('cancelled')
})
