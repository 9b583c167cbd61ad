/** GET /graphs and GET /graphs/{id}. Source: docs/http.md, "Graphs". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { GraphDetails, type GraphSummary } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'

let control: Control
/** Ids of the graphs, by what becomes of them. */
let graphs: { good: string; bad: string; live: string }

beforeAll(async () => {
  control = await startControl()
  const submit = async (tasks: object[], more: object = {}) => {
    const response = await control.post({ tasks, ...more }, { 'x-trace-id': 'of-these' })
    return ((await response.json()) as SubmitResponse).graph_id
  }
  graphs = {
    good: await submit([{ id: 'only', type: 'noop' }], { name: 'nightly', labels: { team: 'web', 'ci/run': 'a,b=c' } }),
    bad: await submit([
      { id: 'report', type: 'noop', depends_on: ['test', 'list'] },
      { id: 'list', type: 'noop' },
      { id: 'test', type: 'shell', params: { command: 'ls', args: ['not/there'] }, depends_on: ['list'] },
      { id: 'publish', type: 'noop', depends_on: ['report', 'report'] },
    ]),
    live: await submit([
      { id: 'sleeps', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'waits', type: 'noop', depends_on: ['sleeps'] },
    ]),
  }
  for (const id of ['only', 'publish']) await control.ended(id)
  await control.reached('sleeps', 'running')
})
afterAll(() => control.dispose())

async function list(query = '', from = control): Promise<{ graphs: GraphSummary[]; next: string | null }> {
  const response = await from.fetch(`/graphs${query}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  return { graphs: (await response.json()) as GraphSummary[], next: response.headers.get('x-next-cursor') }
}

async function look(id: string, query = '', from = control): Promise<GraphDetails> {
  const response = await from.fetch(`/graphs/${id}${query}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  const details = (await response.json()) as GraphDetails
  expect([...Value.Errors(GraphDetails, details)].filter(({ message }) => !message.includes('Unknown format'))).toEqual(
    [],
  )
  return details
}

const refused = async (path: string) => {
  const response = await control.fetch(path)
  return [response.status, ((await response.json()) as { error: string }).error]
}

describe('a list of graphs', () => {
  test('has the newest first, with their states and counts', async () => {
    const { graphs: all, next } = await list()
    expect(next).toBeNull()
    expect(all.map(({ graph_id, state, task_count, counts }) => ({ graph_id, state, task_count, counts }))).toEqual([
      { graph_id: graphs.live, state: 'running', task_count: 2, counts: { running: 1, pending: 1 } },
      { graph_id: graphs.bad, state: 'failed', task_count: 4, counts: { success: 1, failed: 1, skipped: 2 } },
      { graph_id: graphs.good, state: 'success', task_count: 1, counts: { success: 1 } },
    ])
    const [live, , good] = all
    expect(live).not.toHaveProperty('finished_at')
    expect(good).toMatchObject({ trace_id: 'of-these', name: 'nightly', labels: { team: 'web', 'ci/run': 'a,b=c' } })
    expect(live).not.toHaveProperty('labels')
    const [started, finished] = [Date.parse(good!.started_at!), Date.parse(good!.finished_at!)]
    expect(Date.parse(good!.created_at)).toBeLessThanOrEqual(started)
    expect(good!.duration_ms).toBe(finished - started)
  })

  test.each([
    ['?state=failed', ['bad']],
    ['?state=failed,running', ['live', 'bad']],
    ['?state=success&state=failed', ['bad', 'good']],
    ['?state=cancelled', []],
    ['?since=2020-01-31T09:30:00Z', ['live', 'bad', 'good']],
    ['?since=2020-01-31T09:30:00.5%2B02:00', ['live', 'bad', 'good']],
    ['?until=2020-01-31T09:30:00Z', []],
    ['?limit=2&x-cache=1', ['live', 'bad']],
    ['?name=nightly', ['good']],
    ['?name=night', []],
    ['?label=team=web', ['good']],
    ['?label=team=web&label=ci/run=a,b%3Dc&state=success', ['good']],
    ['?label=team=web&label=ci/run=a', []],
    ['?label=toString=web', []],
  ] as const)('%s', async (query, expected) => {
    expect((await list(query)).graphs.map(({ graph_id }) => graph_id)).toEqual(expected.map((name) => graphs[name]))
  })

  test('comes in pages, and the last has no cursor', async () => {
    const first = await list('?limit=2')
    const second = await list(`?limit=2&cursor=${first.next}`)
    expect(second.graphs.map(({ graph_id }) => graph_id)).toEqual([graphs.good])
    expect(second.next).toBeNull()
  })

  test('between two times', async () => {
    const [, bad] = (await list()).graphs
    const found = await list(`?since=${bad!.created_at}&state=failed`)
    expect(found.graphs.map(({ graph_id }) => graph_id)).toEqual([graphs.bad])
    expect((await list(`?until=${bad!.created_at}&state=failed`)).graphs).toEqual([])
  })

  test.each([
    [
      '?state=faild',
      'invalid state "faild": expected running, success, failed, cancelled, unreadable (did you mean "failed"?)',
    ],
    ['?since=yesterday', 'invalid since "yesterday": expected a time such as 2026-01-31T09:30:00Z'],
    [
      '?until=2026-13-01T00:00:00Z',
      'invalid until "2026-13-01T00:00:00Z": expected a time such as 2026-01-31T09:30:00Z',
    ],
    ['?limit=0', 'invalid limit "0": expected a whole number from 1 to 1000'],
    ['?limit=1001', 'invalid limit "1001": expected a whole number from 1 to 1000'],
    ['?label=team', 'invalid label "team": expected name=value'],
    ['?name=', 'invalid name "": expected the name of a graph'],
    ['?cursor=3', 'invalid cursor "3": expected the X-Next-Cursor of an earlier answer'],
    ['?status=failed', 'unknown query parameter "status" (did you mean "state"?)'],
  ])('is refused for %s', async (query, error) => {
    expect(await refused(`/graphs${query}`)).toEqual([400, error])
  })
})

describe('a graph', () => {
  test('that failed says in which order, how long and why', async () => {
    const { tasks, edges, critical_path, root_cause, state, task_count } = await look(graphs.bad)
    expect({ state, task_count }).toEqual({ state: 'failed', task_count: 4 })
    expect(tasks.map(({ id, status }) => [id, status])).toEqual([
      ['list', 'success'],
      ['test', 'failed'],
      ['report', 'skipped'],
      ['publish', 'skipped'],
    ])
    expect(edges).toEqual([
      ['list', 'test'],
      ['test', 'report'],
      ['list', 'report'],
      ['report', 'publish'],
    ])
    expect(critical_path.task_ids).toEqual(['list', 'test'])
    expect(critical_path.duration_ms).toBe(tasks[0]!.duration_ms! + tasks[1]!.duration_ms!)
    expect(root_cause).toEqual({
      ...{ task_id: 'test', code: 'exit_nonzero', skipped: 2 },
      error: expect.stringContaining('command failed: exit status'),
      tail: expect.stringContaining('not/there'),
      try_next: [`taskmill logs ${graphs.bad}/test`, `taskmill get ${graphs.bad}/test`, `taskmill graph ${graphs.bad}`],
    })
    expect(tasks[1]).toMatchObject({
      type: 'os',
      tool_name: 'shell',
      attempt: 1,
      depends_on: ['list'],
      code: 'exit_nonzero',
    })
  })

  test('shows the annotations of its tasks, unless they are long', async () => {
    const annotations = { title: 'Counts the lines', ticket: 'A-7' }
    const { graph_id } = await control.submit([
      { id: 'noted', type: 'noop', annotations },
      { id: 'noted-at-length', type: 'noop', annotations: { ...annotations, more: 'x'.repeat(1_000) } },
      { id: 'bare', type: 'noop', annotations: {} },
    ])
    const { tasks } = await look(graph_id)
    expect(tasks.map((task) => task.annotations)).toEqual([annotations, undefined, undefined])
  })

  test('that succeeded has no root cause', async () => {
    expect(await look(graphs.good)).not.toHaveProperty('root_cause')
  })

  test('is the same after a restart', async () => {
    await using first = await startControl()
    const { graph_id } = await first.submit([
      { id: 'a', type: 'noop' },
      { id: 'b', type: 'shell', params: { command: 'ls', args: ['not/there'] }, depends_on: ['a'] },
      { id: 'c', type: 'noop', depends_on: ['b'] },
    ])
    const before = await look(graph_id, '?wait_ms=60000', first)
    const inList = await list('', first)
    await first.stop('SIGKILL')
    await using second = await startControl({ dataDir: first.dataDir })
    expect(await look(graph_id, '', second)).toEqual(before)
    expect(await list('', second)).toEqual(inList)
  })

  test('that is not there gets 404', async () => {
    expect(await refused('/graphs/nothing')).toEqual([404, 'graph not found: nothing'])
    expect(await refused('/graphs/nothing?wait_ms=60000')).toEqual([404, 'graph not found: nothing'])
  })

  test('of which all tasks were deleted gets 404', async () => {
    const { graph_id } = await control.submit([{ id: 'short', type: 'noop' }])
    await control.ended('short')
    await control.fetch('/tasks/short', { method: 'DELETE' })
    expect(await refused(`/graphs/${graph_id}`)).toEqual([404, `graph not found: ${graph_id}`])
  })
})

describe('a graph that is waited for', () => {
  test('is answered when it has ended', async () => {
    const { graph_id } = await control.submit([
      { id: 'first', type: 'sleep', params: { duration_ms: 200 } },
      { id: 'second', type: 'noop', depends_on: ['first'] },
    ])
    const { state, tasks } = await look(graph_id, '?wait_ms=60000')
    expect({ state, statuses: tasks.map(({ status }) => status) }).toEqual({
      ...{ state: 'success', statuses: ['success', 'success'] },
    })
  })

  test('is answered as it is when the time is up', async () => {
    expect((await look(graphs.live, '?wait_ms=20')).state).toBe('running')
  })

  test('is answered at once if it has ended', async () => {
    expect((await look(graphs.good, '?wait_ms=60000')).state).toBe('success')
  })

  test('ends for all who wait when its last task is cancelled', async () => {
    const { graph_id } = await control.submit([
      { id: 'held', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'after', type: 'noop', depends_on: ['held'] },
    ])
    const waiting = [look(graph_id, '?wait_ms=60000'), look(graph_id, '?wait_ms=60000')]
    await control.reached('held', 'running')
    await control.fetch('/tasks/held/cancel', { method: 'POST' })
    for (const { state, counts } of await Promise.all(waiting)) {
      expect({ state, counts }).toEqual({ state: 'cancelled', counts: { cancelled: 1, skipped: 1 } })
    }
  })

  test.each(['-1', '60001', 'x'])('is refused for wait_ms=%s', async (ms) => {
    expect(await refused(`/graphs/${graphs.good}?wait_ms=${ms}`)).toEqual([
      400,
      `invalid wait_ms "${ms}": expected milliseconds from 0 to 60000`,
    ])
  })
})
