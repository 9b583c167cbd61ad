/** What a follower makes of a look at a graph and of its events. */
import { describe, expect, test } from 'bun:test'
import type { Expectation } from '../../../adapter/follow/expectation.ts'
import { FollowedGraph } from '../../../adapter/follow/followed-graph.ts'
import type { GraphDetails, GraphTask } from '../../../shared/contract/graphs.ts'

const START = Date.parse('2030-01-01T00:00:00.000Z')
const at = (ms: number) => new Date(START + ms).toISOString()

const details = (tasks: Partial<GraphTask>[], more: Partial<GraphDetails> = {}): GraphDetails => ({
  graph_id: 'g',
  state: 'running',
  task_count: tasks.length,
  counts: {},
  created_at: at(0),
  trace_id: 't',
  tasks: tasks.map((task) => ({ id: 'a', type: 'os', tool_name: 'noop', status: 'pending', ...task })),
  edges: [],
  critical_path: { task_ids: [], duration_ms: 0 },
  ...more,
})

function followed(tasks: Partial<GraphTask>[], expectations: Record<string, Expectation> = {}): FollowedGraph {
  const graph = new FollowedGraph('g', new Map(Object.entries(expectations)), START)
  graph.look(details(tasks))
  return graph
}

const changed = (task_id: string, more: object) => ({ task_id, type: 'os', tool_name: 'noop', ...more })
const shown = (graph: FollowedGraph) => graph.progress(START + 1_000, '').tasks

describe('a followed graph', () => {
  test('shows what the look said, in its order', () => {
    const graph = followed([{ id: 'a', status: 'success', started_at: at(10), finished_at: at(30) }, { id: 'b' }])
    expect(graph.progress(START + 1_000, 'away')).toMatchObject({ nowMs: 1_000, notice: 'away' })
    expect(shown(graph)).toMatchObject([
      { id: 'a', title: 'os.noop', phase: 'success', startMs: 10, endMs: 30 },
      { id: 'b', phase: 'waiting' },
    ])
    expect(graph.data()).toEqual({
      graph_id: 'g',
      state: 'running',
      tasks: [
        { id: 'a', status: 'success', duration_ms: 20 },
        { id: 'b', status: 'pending', duration_ms: 0 },
      ],
    })
  })

  test('shows children behind their task, which says how many have ended, and counts for them', () => {
    const graph = followed([{ id: 'map' }, { id: 'next' }])
    const running = { status: 'running', run_status: 'running', attempt: 1 }
    graph.apply('task_changed', changed('map', { ...running, child_count: 3 }))
    graph.apply('task_changed', changed('map[1]', { ...running, parent: 'map' }))
    graph.apply('task_changed', changed('map[0]', { status: 'failed', error: 'no', parent: 'map' }))
    graph.apply('task_changed', changed('map[0]', { status: 'failed', error: 'no', parent: 'map' }))
    expect(shown(graph).map(({ id }) => id)).toEqual(['map', 'map[0]', 'map[1]', 'next'])
    expect(shown(graph)[0]).toMatchObject({ phase: 'running', children: { ended: 1, total: 3 } })
    expect(shown(graph)[1]).toMatchObject({ phase: 'failed', isSurprise: true, parent: 'map' })
    expect(graph.data().tasks.map(({ id }) => id)).toEqual(['map', 'map[0]', 'map[1]', 'next'])
    graph.look(
      details([{ id: 'map', child_count: 20, children: { success: 6, failed: 1, running: 3 } }, { id: 'next' }]),
    )
    expect(shown(graph)[0]).toMatchObject({ children: { ended: 7, total: 20 } })
  })

  test('raises no alarm about children of a task that may fail', () => {
    const failed = { status: 'failed', error: 'no' } as const
    for (const [more, expectations] of [
      [{ continue_on_error: true }, {}],
      [{}, { map: { expect: 'failed' } }],
    ] as const) {
      const graph = followed([{ id: 'map', ...more }], expectations)
      graph.apply('task_changed', changed('map[0]', { ...failed, parent: 'map' }))
      graph.apply('task_changed', changed('map', { ...failed, child_count: 1 }))
      graph.apply('graph_ended', { state: 'failed', counts: {} })
      expect(shown(graph).map(({ isSurprise }) => isSurprise)).toEqual([false, false])
      expect(graph.wentAsMeant).toBe(true)
    }
  })

  test('is changed by events, and keeps the order', () => {
    const graph = followed([{ id: 'a' }, { id: 'b', depends_on: ['a'] }])
    graph.apply(
      'task_changed',
      changed('a', { status: 'running', run_status: 'running', attempt: 1, started_at: at(5) }),
    )
    expect(shown(graph)).toMatchObject([{ id: 'a', phase: 'running', startMs: 5 }, { id: 'b' }])
    graph.apply(
      'task_changed',
      changed('a', { status: 'failed', error: 'no', attempt: 2, started_at: at(5), finished_at: at(9) }),
    )
    graph.apply('task_changed', changed('b', { status: 'skipped', error: 'dependency a failed' }))
    graph.apply('something_new', {})
    graph.apply('graph_ended', { state: 'failed', counts: {} })
    expect(graph.hasEnded).toBe(true)
    expect(graph.data()).toEqual({
      graph_id: 'g',
      state: 'failed',
      tasks: [
        { id: 'a', status: 'failed', error: 'no', duration_ms: 4 },
        { id: 'b', status: 'skipped', error: 'dependency a failed', duration_ms: 0 },
      ],
    })
  })

  test('a reused outcome took no time in this graph', () => {
    const reused_from = { graph_id: 'before', task_id: 'a' }
    const graph = followed([
      { id: 'a', status: 'success', started_at: at(-5_000), finished_at: at(-2_000), attempt: 1, reused_from },
    ])
    expect(shown(graph)).toMatchObject([{ phase: 'success', isReused: true }])
    expect(shown(graph)[0]).not.toHaveProperty('startMs')
    expect(graph.data().tasks).toEqual([{ id: 'a', status: 'success', duration_ms: 0 }])
  })

  test('a deleted task is gone', () => {
    const graph = followed([{ id: 'a' }, { id: 'b' }])
    graph.apply('task_deleted', { task_id: 'a' })
    expect(shown(graph).map(({ id }) => id)).toEqual(['b'])
  })

  test('a reset carries the present state', () => {
    const graph = followed([{ id: 'a' }])
    graph.apply('reset', { reason: 'gone', graph: { state: 'success' }, tasks: [changed('a', { status: 'success' })] })
    expect(graph.data()).toMatchObject({ state: 'success', tasks: [{ id: 'a', status: 'success' }] })
  })

  test('a task that waits names what it waits for, as long as it waits for it', () => {
    const graph = followed([
      ...['a', 'b', 'c', 'd'].map((id) => ({ id })),
      { id: 'e', depends_on: ['a', 'b', 'c', 'd'], waiting: { reason: 'dependencies', tasks: ['a', 'b', 'c', 'd'] } },
    ])
    const detail = () => shown(graph)[4]!.detail
    expect(detail()).toBe('after a, b, c and 1 more')
    graph.apply('task_changed', changed('b', { status: 'success' }))
    expect(detail()).toBe('after a, c, d')
    for (const id of ['a', 'c', 'd']) graph.apply('task_changed', changed(id, { status: 'success' }))
    expect(detail()).toBe('')
  })

  test('the service says why else a task waits', () => {
    const waiting = { reason: 'concurrency', detail: '10 of 10 slots are taken' }
    expect(shown(followed([{ id: 'a', waiting } as Partial<GraphTask>]))[0]!.detail).toBe(waiting.detail)
  })

  test.each([
    [{ reason: 'runtime', detail: 'waiting for memory_bytes' }, 'waiting for memory_bytes'],
    [{ reason: 'backoff', until: '2030-01-01T12:34:56.789Z' }, 'next attempt at 12:34:56 UTC'],
    [{ reason: 'concurrency' }, 'waits for a slot'],
    [{ reason: 'group', group: 'g', graphs: ['g1'] }, 'waits for a place in group g, after graph g1'],
    [undefined, ''],
  ])('an event explains with %j: %s', (waiting, words) => {
    const graph = followed([{ id: 'a', status: 'running' }, { id: 'b' }])
    for (const task_id of ['a', 'gone']) graph.apply('task_waiting', { task_id, waiting })
    expect(shown(graph).map(({ detail }) => detail)).toEqual([words, ''])
    expect(shown(graph)[0]!.phase).toBe(waiting === undefined ? 'running' : 'waiting')
    graph.apply('task_waiting', { task_id: 'a' })
    expect(shown(graph)[0]).toMatchObject({ detail: '', phase: 'running' })
  })

  test('an end that the rules of the graph provide for is tolerated', () => {
    const graph = followed([
      { id: 'a', continue_on_error: true },
      { id: 'b', status: 'skipped', error: 'no dependency failed' },
      { id: 'c', status: 'skipped', error: 'dependency x failed' },
    ])
    graph.apply('task_changed', changed('a', { status: 'failed', error: 'no' }))
    expect(shown(graph)).toMatchObject([{ isSurprise: false, isTolerated: true }, { isTolerated: true }, {}])
    expect(shown(graph)[2]).not.toHaveProperty('isTolerated')
  })

  test('a running task shows the newest message that it reported', () => {
    const graph = followed([{ id: 'a' }])
    graph.apply('task_changed', changed('a', { status: 'running', progress: { timestamp: at(1), message: '1 of 2' } }))
    graph.apply('task_changed', changed('a', { status: 'running' }))
    expect(shown(graph)[0]!.detail).toBe('1 of 2')
  })
})

describe('went as meant', () => {
  const ended = (tasks: Partial<GraphTask>[], expectations: Record<string, Expectation> = {}) => {
    const graph = followed(tasks, expectations)
    graph.apply('graph_ended', { state: 'failed' })
    return graph.wentAsMeant
  }
  const meant = { expect: 'failed' }

  test.each<[string, boolean, Partial<GraphTask>[], Record<string, Expectation>]>([
    ['every task succeeded', true, [{ status: 'success' }], {}],
    ['a task failed', false, [{ status: 'failed' }], {}],
    ['a task that is meant to fail failed', true, [{ status: 'failed' }], { a: meant }],
    ['a task that is meant to fail succeeded', true, [{ status: 'success' }], { a: meant }],
    ['a task was cancelled', false, [{ status: 'cancelled' }], { a: { expect: 'cancelled' } }],
    ['a task was skipped because of a deleted one', false, [{ status: 'skipped' }], {}],
    ['a task is meant to be skipped', true, [{ status: 'skipped' }], { a: { expect: 'skipped' } }],
  ])('%s: %p', (_, expected, tasks, expectations) => {
    expect(ended(tasks, expectations)).toBe(expected)
  })

  test('the service knows what the graph tolerates, also of tasks that its answer left out', () => {
    const graph = followed([{ id: 'a', status: 'success' }])
    graph.apply('task_changed', changed('beyond', { status: 'failed', error: 'no' }))
    expect(graph.wentAsMeant).toBe(false)
    graph.apply('graph_ended', { state: 'success' })
    expect(graph.wentAsMeant).toBe(true)
  })

  test('tasks that were skipped because of a meant failure are meant', () => {
    const chain: Partial<GraphTask>[] = [
      { id: 'a', status: 'failed' },
      { id: 'b', status: 'skipped', depends_on: ['a'] },
      { id: 'c', status: 'skipped', depends_on: ['b'] },
    ]
    expect(ended(chain, { a: meant })).toBe(true)
    expect(ended(chain)).toBe(false)
  })

  test('failures that do not matter, and tasks that did not have to run, are meant', () => {
    const tasks: Partial<GraphTask>[] = [
      { id: 'a', status: 'failed', continue_on_error: true },
      { id: 'b', status: 'skipped', depends_on: ['a'], error: 'no dependency failed' },
      { id: 'c', status: 'skipped', depends_on: ['b'], error: 'dependency b skipped' },
    ]
    expect(ended(tasks)).toBe(true)
    const lost: Partial<GraphTask> = { id: 'd', status: 'skipped', depends_on: ['a'], error: 'dependency a skipped' }
    expect(ended([...tasks, lost])).toBe(false)
    expect(ended([{ ...tasks[0], continue_on_error: false }])).toBe(false)
  })

  test('the service tells what its annotations say, and the file counts before it', () => {
    const annotations = { title: 'Breaks', expect: 'failed', attempts: '2' }
    const task: Partial<GraphTask> = { status: 'failed', attempt: 2, annotations }
    expect(ended([task])).toBe(true)
    expect(ended([task], { a: { title: 'Must work' } })).toBe(false)
    expect(shown(followed([task]))).toMatchObject([{ title: 'Breaks', isSurprise: false }])
    expect(shown(followed([{ ...task, attempt: 1 }]))).toMatchObject([{ isSurprise: true }])
  })

  test('not before the end', () => {
    expect(followed([{ status: 'success' }]).wentAsMeant).toBe(false)
  })
})
