/** The small rules of the page. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  agoText,
  bytesText,
  countText,
  durationText,
  elapsedText,
  idParts,
  timeText,
  uptimeMs,
} from '../../../control/dashboard/model/amounts.ts'
import { barParts } from '../../../control/dashboard/model/counts.ts'
import { criticalPath } from '../../../control/dashboard/model/critical-path.ts'
import { imageTypeOf, textPreview } from '../../../control/dashboard/model/file-preview.ts'
import { isShown, joined, NO_FILTER } from '../../../control/dashboard/model/list-filter.ts'
import { lookOf, typeWord, waitingSentence, worstLook } from '../../../control/dashboard/model/looks.ts'
import { GRAPH_VIEWS, hashOf, type Place, placeOf, TASK_TABS } from '../../../control/dashboard/model/place.ts'
import { differenceText, runsByName, tasksOverRuns } from '../../../control/dashboard/model/runs.ts'
import { search } from '../../../control/dashboard/model/search.ts'
import type { GraphDetails, GraphSummary, GraphTask } from '../../../control/dashboard/model/wire.ts'
import { waterfallOf } from '../../../control/dashboard/waterfall/rows.ts'
import { NO_DEPENDENCY_FAILED } from '../../../shared/contract/run-if.ts'
import { TASK_STATUSES } from '../../../shared/contract/task-status.ts'

const time = (seconds: number) => new Date(seconds * 1_000).toISOString()

const ran = (id: string, from: number, to: number | undefined, more: Partial<GraphTask> = {}): GraphTask => ({
  ...{ id, type: 'os', status: to === undefined ? 'running' : 'success', started_at: time(from) },
  ...(to !== undefined && { finished_at: time(to) }),
  ...more,
})

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [4_210, '4.2 s'],
  [59_900, '59 s'],
  [187_000, '3 m 07 s'],
  [7_500_000, '2 h 05 m'],
  [273_600_000, '3 d 4 h'],
])('%d ms is %s', (ms, text) => expect(durationText(ms)).toBe(text))

test('times that pass, times ago, bytes', () => {
  expect([20, 4_950, 42_900, 98_200, 3_787_000].map(elapsedText)).toEqual([
    '0 s',
    '4 s',
    '42 s',
    '1 m 38 s',
    '1 h 03 m',
  ])
  expect(['42s', '2m5s', '1h0m3s'].map(uptimeMs)).toEqual([42_000, 125_000, 3_603_000])
  const ago = (seconds: number) => agoText(time(0), seconds * 1_000)
  expect([2, 42, 190, 7_300, 200_000].map(ago)).toEqual(['just now', '42 s ago', '3 m ago', '2 h ago', '2 d ago'])
  expect([900, 65_536, 1.5 * 2 ** 30].map(bytesText)).toEqual(['900 B', '64 KiB', '1.5 GiB'])
})

test('numbers and times have the same form everywhere', () => {
  expect([0, 999, 1_000, 12_000, 1_234_567].map(countText)).toEqual(['0', '999', '1,000', '12,000', '1,234,567'])
  expect(timeText(new Date(2026, 2, 1, 4, 5, 9).getTime())).toBe('2026-03-01 04:05:09')
  expect(timeText('no time')).toBe('')
})

test('the parts of an id are the whole id', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (id) => expect(idParts(id).join('')).toBe(id)))
  expect(idParts('compile')).toEqual(['compile', ''])
  expect(idParts('a-very-long-identifier-0001')[1]).toBe('ier-0001')
})

test('an address is the place that it was made from', () => {
  const text = fc.string({ minLength: 1, unit: 'grapheme' })
  const graphPlace = fc.record({
    at: fc.constant('graph' as const),
    graphId: text,
    view: fc.constantFrom(...GRAPH_VIEWS),
    taskId: text,
    tab: fc.constantFrom(...TASK_TABS),
    state: fc.constantFrom(...TASK_STATUSES),
    groups: fc.dictionary(text, fc.boolean(), { minKeys: 1 }),
  })
  fc.assert(fc.property(graphPlace, (place: Place) => expect(placeOf(hashOf(place))).toEqual(place)))
  expect(placeOf('#/nowhere')).toEqual({ at: 'graphs' })
  expect(placeOf('#/graphs/%zz?view=no&tab=no')).toEqual({
    at: 'graph',
    graphId: '%zz',
    view: 'graph',
    tab: 'overview',
  })
})

test('the parts of a bar fill it at most, and none is too thin to see', () => {
  const counts = fc.record({ success: fc.nat(100_000), failed: fc.nat(3), pending: fc.nat(100_000) })
  fc.assert(
    fc.property(counts, (of) => {
      const total = of.success + of.failed + of.pending
      const parts = barParts(of, total)
      expect(parts.reduce((sum, { percent }) => sum + percent, 0)).toBeLessThan(100.001)
      expect(parts.every(({ percent }) => percent > 1.8)).toBe(true)
    }),
  )
})

test('the critical path goes back over the dependency that ended last', () => {
  const tasks = [ran('a', 0, 2), ran('b', 0, 5), ran('c', 5, 6), ran('d', 7, 10), ran('e', 6, 8)]
  const { ids, runningShare } = criticalPath(
    tasks,
    [
      ['a', 'c'],
      ['b', 'c'],
      ['c', 'd'],
      ['c', 'e'],
    ],
    0,
  )
  expect([...ids]).toEqual(['d', 'c', 'b'])
  expect(runningShare).toBe(0.9)
  expect(criticalPath([], [], 0).ids.size).toBe(0)
})

test('the critical path goes through the children of a group, which alone run', () => {
  const child = (id: string, start: number, end: number) => ({ ...ran(id, start, end), parent: 'g' })
  const tasks = [ran('a', 0, 1), ran('g', 1, 9)]
  const children = [child('g[0]/x', 1, 2), child('g[0]/y', 2, 3), child('g[1]/x', 2, 6), child('g[1]/y', 8, 9)]
  const within = [
    ['g[0]/x', 'g[0]/y'],
    ['g[1]/x', 'g[1]/y'],
  ] as const
  const { ids, runningShare } = criticalPath(
    [...tasks, ...children, ran('end', 9, 10)],
    [['a', 'g'], ['g', 'end'], ...within].map(([from, to]): [string, string] => [from!, to!]),
    0,
  )
  expect([...ids]).toEqual(['end', 'g', 'g[1]/y', 'g[1]/x', 'a'])
  expect(runningShare).toBe(0.7)
})

test('a waterfall stays within its width, in order of start', () => {
  const graph = { graph_id: 'g', state: 'running' as const, task_count: 3, counts: {}, created_at: time(0) }
  const tasks = [ran('late', 6, undefined), ran('first', 1, 4), { id: 'none', type: 'os', status: 'pending' as const }]
  const { rows, totalMs, ticks } = waterfallOf(graph, tasks, [['first', 'late']], 10_000)
  expect(rows.map(({ task }) => task.id)).toEqual(['first', 'late', 'none'])
  expect(totalMs).toBe(10_000)
  expect(rows[0]).toMatchObject({ waiting: { from: 0, width: 10 }, running: { from: 10, width: 30 } })
  expect(rows[1]).toMatchObject({ waiting: { from: 40, width: 20 }, running: { from: 60, width: 40 } })
  expect(rows[2]!.running).toBeUndefined()
  expect(ticks.map(({ ms }) => ms)).toEqual([2_000, 4_000, 6_000, 8_000])
})

test('search wants every word, and prefers beginnings', () => {
  const names = ['unit-test', 'test', 'latest', 'build']
  expect(search(names, 'test', (name) => name, 9)).toEqual(['test', 'unit-test', 'latest'])
  expect(search(names, 'unit te', (name) => name, 9)).toEqual(['unit-test'])
  expect(search(names, ' ', (name) => name, 2)).toEqual(['unit-test', 'test'])
})

test('why a task waits, in words', () => {
  const waits = (waiting: GraphTask['waiting']) =>
    waitingSentence({ id: 'a', type: 'os', status: 'pending', waiting } as GraphTask, 0)
  expect(waits({ reason: 'dependencies', tasks: ['a', 'b', 'c', 'd'] })).toBe('waits for a, b, c and 1 more')
  expect(waits({ reason: 'group', group: 'deploy', graphs: ['g1', 'g2'] })).toBe(
    'waits for a place in group deploy, held by graph g1, g2',
  )
  expect(waits({ reason: 'concurrency' })).toBe('waits for a free slot')
  expect(waits({ reason: 'backoff', until: time(3) })).toBe('tries again in 3 s')
  const detail = 'attempt 2 of 3 follows'
  expect(waits({ reason: 'backoff', until: time(98), detail })).toBe('tries again in 1 m 38 s: attempt 2 of 3 follows')
  expect(waits({ reason: 'concurrency', detail: '24 of 24 slots are taken' })).toBe('waits: 24 of 24 slots are taken')
  expect(waits({ reason: 'runtime', detail: 'waiting for pids' })).toBe('waits at its runtime service: for pids')
  expect(waits({ reason: 'runtime', detail: 'default does not answer' })).toBe(
    'waits at its runtime service: default does not answer',
  )
  expect(waits({ reason: 'approval' })).toBe('waits for approval')
  expect(waits({ reason: 'approval', detail: `go\n  on ${'x'.repeat(90)}` })).toBe(
    `waits for approval: go on ${'x'.repeat(73)}…`,
  )
  expect(waits(undefined)).toBeUndefined()
  expect([typeWord({ type: 'os', tool_name: 'shell' }), typeWord({ type: 'mcp', tool_name: 'a/b' })]).toEqual([
    'shell',
    'mcp a/b',
  ])
})

test('ends that the rules of a graph provide for have looks of their own', () => {
  const lookAt = (task: Partial<GraphTask>) => lookOf({ status: 'failed', ...task })
  expect([lookAt({}), lookAt({ continue_on_error: true })]).toEqual(['failed', 'tolerated'])
  expect(lookAt({ status: 'skipped', error: 'dependency a failed' })).toBe('skipped')
  expect(lookAt({ status: 'skipped', error: NO_DEPENDENCY_FAILED })).toBe('unneeded')
  expect(lookAt({ status: 'success', continue_on_error: true })).toBe('success')
})

test('a task that waits for an approval has a look of its own', () => {
  const asking = { status: 'pending', waiting: { reason: 'approval' } } as const
  expect([lookOf(asking), lookOf({ ...asking, status: 'success' })]).toEqual(['asking', 'success'])
  expect(worstLook([{ status: 'success' }, asking, { status: 'running' }])).toBe('asking')
  expect(worstLook([{ status: 'failed' }, asking])).toBe('failed')
})

test('of several tasks, the one that needs attention gives the look', () => {
  const lookOfAll = (...statuses: GraphTask['status'][]) => worstLook(statuses.map((status) => ({ status })))
  expect(lookOfAll('success', 'failed', 'running')).toBe('failed')
  expect(lookOfAll('success', 'pending')).toBe('running')
  expect(lookOfAll('success', 'skipped', 'success')).toBe('success')
  expect(lookOfAll('success', 'skipped', 'skipped')).toBe('skipped')
  expect(lookOfAll('success', 'skipped', 'pending')).toBe('running')
  expect(lookOfAll('success', 'success')).toBe('success')
})

const graph = (graph_id: string, at: number, more: Partial<GraphSummary> = {}): GraphSummary => ({
  ...{ graph_id, state: 'success', task_count: 1, counts: { success: 1 }, created_at: time(at) },
  ...more,
})

test('the list shows the graphs of a state and of a time, and those that it has not read, once', () => {
  const asking = graph('asks', 2, { state: 'running', counts: { pending: 1 }, waiting: { approval: 1 } })
  const all = [graph('new', 9, { state: 'failed' }), graph('old', 1)]
  const shown = (filter: Partial<typeof NO_FILTER>) =>
    joined(all, [asking, all[1]!])
      .filter((one) => isShown(one, { ...NO_FILTER, ...filter }, 10_000))
      .map(({ graph_id }) => graph_id)
  expect(shown({})).toEqual(['new', 'asks', 'old'])
  expect(shown({ shown: 'asking' })).toEqual(['asks'])
  expect(shown({ shown: 'running' })).toEqual(['asks'])
  expect(shown({ shown: 'failed' })).toEqual(['new'])
  expect(shown({ withinMs: 8_000 })).toEqual(['new', 'asks'])
  expect(joined(all, [])).toBe(all)
})

test('runs of a name stand in order, the newest last, at most so many', () => {
  const named = [
    graph('c', 3, { name: 'a' }),
    graph('x', 2),
    graph('b', 2, { name: 'a' }),
    graph('a', 1, { name: 'a' }),
  ]
  const ids = (most: number) => runsByName(named, most).map(({ name, runs }) => [name, runs.map((run) => run.graph_id)])
  expect(ids(2)).toEqual([['a', ['b', 'c']]])
  expect(ids(3)).toEqual([['a', ['a', 'b', 'c']]])
  const ofTenants = ['acme', undefined, 'globex', 'acme'].map((tenant, i) =>
    graph(`${i}`, i, { name: 'a', ...(tenant !== undefined && { tenant }) }),
  )
  expect(runsByName(ofTenants, 9).map(({ tenant, runs }) => [tenant, runs.length])).toEqual([
    ...[
      ['acme', 2],
      [undefined, 1],
      ['globex', 1],
    ],
  ])
})

test('tasks of runs share a row by their ids; of two runs, what differs is said', () => {
  const run = (tasks: readonly GraphTask[]) => ({ tasks }) as unknown as GraphDetails
  const [same, slower] = [ran('same', 0, 1, { duration_ms: 5 }), ran('slower', 0, 1, { duration_ms: 5 })]
  const before = run([same, slower, ran('gone', 0, 1), ran('broke', 0, 1)])
  const after = run([
    ...[same, { ...slower, duration_ms: 2_105 }, ran('broke', 0, 1, { status: 'failed' })],
    ...[ran('new', 0, 1), ran('new[0]', 0, 1, { parent: 'new' })],
  ])
  const rows = tasksOverRuns([before, undefined, after]).map(({ id, tasks }) => [id, tasks.map((task) => task?.status)])
  expect(rows).toEqual([
    ['same', ['success', undefined, 'success']],
    ['slower', ['success', undefined, 'success']],
    ['broke', ['success', undefined, 'failed']],
    ['new', [undefined, undefined, 'success']],
    ['gone', ['success', undefined, undefined]],
  ])
  expect(tasksOverRuns([before, after]).map(({ tasks }) => differenceText(tasks))).toEqual([
    ...['', '+2.1 s', 'success → failed', 'new', 'gone'],
  ])
})

test('the address of runs side by side is the place that it was made from', () => {
  for (const place of [
    { at: 'runs', name: 'a & b/c' },
    { at: 'runs', name: 'a', tenant: 'acme' },
    { at: 'runs', ids: ['one', 'two'] },
  ] as const)
    expect(placeOf(hashOf(place))).toEqual(place)
  expect(placeOf('#/runs')).toEqual({ at: 'graphs' })
})

test('files are shown as images of a few types, as JSON or as text, never as pages', () => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  expect(['a.PNG', 'd/b.jpeg', 'c.svg', 'd.html', 'png', 'e.png.txt'].map(imageTypeOf)).toEqual([
    ...['image/png', 'image/jpeg', undefined, undefined, undefined, undefined],
  ])
  expect(textPreview('a.json', bytes('{"b":1}'), 7)).toEqual({ kind: 'json', value: { b: 1 } })
  expect(textPreview('a.json', bytes('{"b"'), 7)).toEqual({ kind: 'text', text: '{"b"', isCut: true })
  expect(textPreview('a.json', bytes('{'), 1)).toEqual({ kind: 'text', text: '{', isCut: false })
  expect(textPreview('a.svg', bytes('<svg>'), 5)).toEqual({ kind: 'text', text: '<svg>', isCut: false })
  expect(textPreview('a', bytes('x\0'), 2)).toMatchObject({ kind: 'none' })
})
