/** Goal: what the page shows is what the service has: each event once, in order, and a gap is noticed. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { doneText, graphLook } from '../../../control/dashboard/model/counts.ts'
import { EventText } from '../../../control/dashboard/model/event-text.ts'
import { listAfterEvents, listOf, MAX_LISTED_GRAPHS } from '../../../control/dashboard/model/graph-list.ts'
import { afterEvents, type GraphWatch, watchOf, withCounts } from '../../../control/dashboard/model/graph-watch.ts'
import { workWord } from '../../../control/dashboard/model/looks.ts'
import { changedText } from '../../../control/dashboard/model/patch.ts'
import { pauseSentence } from '../../../control/dashboard/model/pause.ts'
import { asksWhy, waitingOf } from '../../../control/dashboard/model/waiting.ts'
import type { GraphDetails, GraphSummary, StreamEvent, Waiting } from '../../../control/dashboard/model/wire.ts'

const AT = '2026-01-01T00:00:00.000Z'

const detail: GraphDetails = {
  ...{ graph_id: 'g', state: 'running', task_count: 3, counts: { pending: 3 }, created_at: AT, trace_id: 't' },
  tasks: [
    { id: 'a', type: 'os', tool_name: 'noop', status: 'pending' },
    { id: 'b', type: 'os', tool_name: 'noop', status: 'pending', depends_on: ['a'] },
    { id: 'c', type: 'os', tool_name: 'noop', status: 'pending' },
  ],
  edges: [['a', 'b']],
  critical_path: { task_ids: [], duration_ms: 0 },
}

const changed = (seq: number, task_id: string, status: string, more: object = {}): StreamEvent => ({
  ...{ kind: 'task_changed', seq, previous: seq - 1, at: AT, graph_id: 'g', task_id, type: 'os', status, ...more },
})

const ended = (seq: number, more: object = {}): StreamEvent => ({
  ...{ kind: 'graph_ended', seq, previous: seq - 1, at: AT, graph_id: 'g', state: 'failed', ...more },
})

const statuses = (watch: GraphWatch) => watch.tasks.map(({ status }) => status)

test('an event changes its task and the counts, and keeps what it does not tell', () => {
  const after = afterEvents(watchOf(detail, 10), [
    changed(11, 'a', 'running', { started_at: AT, attempt: 1 }),
    changed(12, 'a', 'success', { started_at: AT, finished_at: AT, duration_ms: 0, attempt: 1 }),
    changed(13, 'b', 'running', { started_at: AT }),
  ])
  expect(statuses(after)).toEqual(['success', 'running', 'pending'])
  expect(after.summary).toMatchObject({ counts: { success: 1, running: 1, pending: 1 }, started_at: AT })
  expect(after.tasks[1]).toEqual({ ...detail.tasks[1]!, status: 'running', started_at: AT })
  expect(after.edges).toBe(detail.edges)
  expect(after.isBehind).toBe(false)
})

test('events that come again change nothing', () => {
  const events = [changed(11, 'a', 'running'), changed(12, 'a', 'failed', { error: 'no' }), changed(13, 'b', 'skipped')]
  const once = afterEvents(watchOf(detail, 10), events)
  expect(afterEvents(once, events)).toEqual(once)
  expect(afterEvents(afterEvents(watchOf(detail, 10), events.slice(0, 2)), events)).toEqual(once)
})

test('a gap is noticed', () => {
  expect(afterEvents(watchOf(detail, 10), [changed(14, 'a', 'running')]).isBehind).toBe(true)
  expect(afterEvents(watchOf(detail, 14), [changed(15, 'a', 'running')]).isBehind).toBe(false)
})

test('the end of a graph, and its removal', () => {
  const after = afterEvents(watchOf(detail, 10), [ended(11), { ...ended(12), kind: 'graph_removed' }])
  expect(after.summary).toMatchObject({ state: 'failed', finished_at: AT })
  expect(after.isRemoved).toBe(true)
})

test('a pause of a graph keeps its beginning, and ends with a resume or the end of the graph', () => {
  const event = (seq: number, kind: string, more: object = {}) => ({ ...ended(seq), kind, ...more }) as StreamEvent
  const later = '2026-01-01T00:05:00.000Z'
  const pauses = [event(11, 'graph_paused', { by: 'ops', why: 'w' }), event(12, 'graph_paused', { at: later })]
  const pauseIn = (events: readonly StreamEvent[]) => afterEvents(watchOf(detail, 10), events).summary.pause
  expect(pauseIn(pauses.slice(0, 1))).toEqual({ since: AT, by: 'ops', why: 'w' })
  expect(pauseSentence(pauseIn(pauses.slice(0, 1))!, 'This graph was', Date.parse(later))).toBe(
    'This graph was paused 5 m ago by ops: nothing new starts (w).',
  )
  expect(pauseIn(pauses)).toEqual({ since: AT })
  for (const over of [event(13, 'graph_resumed'), ended(13)]) expect(pauseIn([...pauses, over])).toBeUndefined()
  const list = listOf([detail], undefined, '10')
  const listed = (events: readonly StreamEvent[]) => listAfterEvents(list, events).graphs[0]?.pause
  expect(listed(pauses)).toEqual({ since: AT })
  for (const over of [event(13, 'graph_resumed'), ended(13)]) expect(listed([...pauses, over])).toBeUndefined()
})

test('a retry in place runs an ended graph again, and its cause is gone', () => {
  const rootCause = { task_id: 'a', error: 'no' } as unknown as NonNullable<GraphWatch['rootCause']>
  const retried = (seq: number, ids: readonly string[], tasks: number): StreamEvent => ({
    ...{ kind: 'tasks_retried', seq, previous: seq - 1, at: AT, graph_id: 'g', retried: ids, tasks },
  })
  const lost = [changed(11, 'a', 'failed', { error: 'no', finished_at: AT }), changed(12, 'b', 'skipped')]
  const over = [...lost, changed(13, 'c', 'success'), ended(14, { counts: { failed: 1, skipped: 1, success: 1 } })]
  const again = [retried(15, ['a'], 2), changed(16, 'a', 'pending', { attempt: 1 }), changed(17, 'b', 'pending')]
  const after = afterEvents({ ...afterEvents(watchOf(detail, 10), over), rootCause }, again)
  expect(after.summary).toMatchObject({ state: 'running', counts: { pending: 2, success: 1 } })
  expect(Object.keys(after.summary)).not.toContain('finished_at')
  expect(after.rootCause).toBeUndefined()
  expect(after.tasks[0]).toEqual({ ...detail.tasks[0]!, attempt: 1 })

  const list = listOf([detail], undefined, '10')
  const listed = (events: readonly StreamEvent[]) => listAfterEvents(list, events).graphs[0]!
  for (const upTo of [1, 3]) {
    const running = listed([...over, ...again.slice(0, upTo)])
    expect(running).toMatchObject({ state: 'running', counts: { pending: 2, success: 1 } })
    expect(Object.keys(running)).not.toContain('finished_at')
    expect(Object.keys(running)).not.toContain('duration_ms')
  }
  const early = [retried(13, ['a'], 2), changed(14, 'a', 'running'), changed(15, 'b', 'pending')]
  expect(listed([...lost, ...early]).counts).toEqual({ running: 1, pending: 2 })
  expect(listed([...lost, retried(13, ['a'], 2)]).counts).toEqual({ skipped: 1, pending: 2 })
  const all = listOf([{ ...detail, state: 'cancelled', counts: { cancelled: 2, skipped: 1 } }], undefined, '10')
  expect(listAfterEvents(all, [retried(11, ['a', 'b'], 3)]).graphs[0]!.counts).toEqual({ pending: 3 })
})

test('a change of a graph names who made it, and its tasks are read again', () => {
  const patch = (seq: number, more: object): StreamEvent => ({
    ...{ kind: 'graph_changed', seq, previous: seq - 1, at: AT, graph_id: 'g', added: [], removed: [], replaced: [] },
    ...more,
  })
  const events = [
    patch(11, { revision: 1, by: 'ada', added: ['d', 'e'], removed: ['a'] }),
    patch(12, { revision: 2, replaced: ['b'] }),
    patch(13, { revision: 3, by: 'ada' }),
  ]
  const after = afterEvents(watchOf(detail, 10), events)
  expect(after.summary).toMatchObject({ revision: 3, patched_by: ['ada'] })
  expect(after.isBehind).toBe(true)
  const texts = [1, 2, 3].map((upTo) => changedText(afterEvents(watchOf(detail, 10), events.slice(0, upTo)).summary))
  expect(texts).toEqual(['changed once, by ada', 'changed 2 times, by ada', 'changed 3 times, by ada'])
  expect(changedText(detail)).toBeUndefined()
  expect(changedText({ ...detail, revision: 1 })).toBe('changed once')

  const asks = changed(11, 'b', 'pending', { waiting: { reason: 'approval' } })
  const list = listAfterEvents(listOf([detail], undefined, '10'), [asks])
  const listed = listAfterEvents(list, [patch(12, { revision: 1, added: ['d', 'e', 'f'], removed: ['b'] })])
  expect(list.graphs[0]!.waiting).toEqual({ approval: 1 })
  expect(listed.graphs[0]).toMatchObject({ revision: 1, task_count: 5, counts: { pending: 5 }, waiting: undefined })
  expect(listed.isBehind).toBe(false)
  expect(listAfterEvents(list, [patch(12, { revision: 1, truncated: true })]).isBehind).toBe(true)
  const emptied = listAfterEvents(list, [patch(12, { revision: 1, removed: ['a', 'b', 'c'] })])
  expect(emptied.graphs[0]!.counts).toEqual({})
})

test('after a reset, the list counts on', () => {
  const reset = { kind: 'reset', seq: 12, at: AT, graph_id: '', graphs: [detail] }
  const events = [changed(11, 'a', 'running'), reset, changed(13, 'a', 'running')]
  expect(listAfterEvents(listOf([detail], undefined, '10'), events).graphs[0]!.counts).toEqual({
    running: 1,
    pending: 2,
  })
})

test('of a graph whose first tasks are known, the counts stay those of all tasks', () => {
  const all = { pending: 20_000 }
  const watch = watchOf({ ...detail, task_count: 20_000, counts: all, truncated: true }, 10)
  const after = afterEvents(watch, [changed(11, 'a', 'running', { started_at: AT }), changed(12, 'z', 'failed')])
  expect(statuses(after)).toEqual(['running', 'pending', 'pending'])
  expect(after.summary).toMatchObject({ counts: all, started_at: AT })
  const counts = { running: 5, failed: 1, pending: 19_994 }
  const fresh = withCounts(after, { ...after.summary, counts })
  expect(fresh.summary.counts).toEqual(counts)
  const over = afterEvents(fresh, [ended(13, { counts: { success: 19_999, failed: 1 } })])
  expect(over.summary).toMatchObject({ state: 'failed', counts: { success: 19_999, failed: 1 } })
  expect(withCounts(over, { ...over.summary, counts, state: 'running' })).toBe(over) // an answer that came late
})

test('an event keeps the rules of its task, and tells where an outcome comes from', () => {
  const rules = { run_if: 'always', continue_on_error: true } as const
  const tasks = detail.tasks.map((task) => ({ ...task, ...rules }))
  const reused_from = { graph_id: 'f', task_id: 'a' }
  const after = afterEvents(watchOf({ ...detail, tasks }, 10), [
    changed(11, 'a', 'success', { reused_from }),
    changed(12, 'b', 'running'),
  ])
  expect(after.tasks[0]).toMatchObject({ ...rules, reused_from })
  expect(after.tasks[1]).toMatchObject(rules)
})

test('a running task says what it waits for in the runtime service, until it does not', () => {
  const waiting: Waiting = { reason: 'runtime', detail: 'waiting for memory_bytes' }
  const told = (more: object): StreamEvent => ({ ...changed(11, 'a', 'x'), kind: 'task_waiting', ...more })
  const before = afterEvents(watchOf(detail, 10), [changed(11, 'a', 'running')])
  const held = afterEvents(before, [told({ waiting })])
  expect(held.tasks[0]!.waiting).toEqual(waiting)
  expect(afterEvents(held, [told({})]).tasks).toEqual(before.tasks)
  expect([held.seq, held.isBehind]).toEqual([11, false])
})

test('a reset brings the present state; another shape has to be read', () => {
  const reset = (tasks: object[]): StreamEvent => ({
    ...{ kind: 'reset', seq: 50, at: AT, graph_id: 'g', reason: 'old' },
    ...{ graph: { ...detail, state: 'success', tasks: undefined }, tasks },
  })
  const states = detail.tasks.map(({ id }) => ({ task_id: id, type: 'os', status: 'success' }))
  const after = afterEvents(watchOf(detail, 10), [reset(states), changed(51, 'a', 'success')])
  expect(statuses(after)).toEqual(['success', 'success', 'success'])
  expect([after.seq, after.isBehind]).toEqual([51, false])
  expect(afterEvents(watchOf(detail, 10), [reset(states.slice(1))]).isBehind).toBe(true)
})

test('a task waits for what has not succeeded, and the service is asked where that is not all', () => {
  const watch = watchOf(detail, 10)
  expect(waitingOf(watch.tasks[1]!, watch)).toEqual({ reason: 'dependencies', tasks: ['a'] })
  expect(asksWhy(watch)).toBe(true)
  const waiting: Waiting = { reason: 'concurrency' }
  const busy = { ...watch, tasks: watch.tasks.map((task) => ({ ...task, waiting })) }
  expect(asksWhy(busy)).toBe(false)
})

const summary = (graph_id: string, more: Partial<GraphSummary> = {}): GraphSummary => ({
  ...{ graph_id, state: 'running', task_count: 3, counts: { pending: 3 }, created_at: AT, ...more },
})

test('the list counts the tasks of a graph as they change', () => {
  const list = listAfterEvents(listOf([], undefined, '10'), [
    { kind: 'graph_accepted', seq: 11, previous: 10, at: AT, graph_id: 'g', name: 'n', tenant: 'acme', task_count: 3 },
    changed(12, 'a', 'running'),
    changed(13, 'a', 'failed'),
    changed(14, 'b', 'skipped'),
  ])
  expect(list.graphs).toEqual([
    summary('g', { name: 'n', tenant: 'acme', counts: { failed: 1, skipped: 1, pending: 1 } }),
  ])
  const after = listAfterEvents(list, [ended(15, { counts: { failed: 1, skipped: 1, success: 1 } })])
  expect(after.graphs[0]).toMatchObject({ state: 'failed', counts: { failed: 1, skipped: 1, success: 1 } })
  expect(listAfterEvents(after, [{ ...ended(16), kind: 'graph_removed' }]).graphs).toEqual([])
})

test('the list knows what waits for a person or for its next attempt', () => {
  const waiting = { approval: 1, backoff: 1 }
  const list = listOf([summary('g', { counts: { pending: 1, running: 2 }, waiting })], undefined, '10')
  const shown = (events: readonly StreamEvent[]) => listAfterEvents(list, events).graphs[0]!
  const answered = { ...changed(11, 'a', 'success'), type: 'approval' }
  expect(shown([answered])).toMatchObject({ waiting: { backoff: 1 } })
  const again = { ...changed(12, 'b', 'running'), attempt: 2 }
  expect(shown([answered, again]).waiting).toBeUndefined()
  const more = { ...changed(13, 'c', 'running'), attempt: 1, waiting: { reason: 'backoff' } }
  expect(shown([answered, again, more, more])).toMatchObject({ waiting: { backoff: 1 } })
  expect(graphLook(shown([answered]))).toBe('running')
  expect(graphLook(summary('g', { counts: { running: 1, pending: 1 }, waiting: { backoff: 1 } }))).toBe('backoff')
  expect(graphLook(summary('g', { counts: { running: 1, pending: 1 }, waiting: { approval: 1 } }))).toBe('asking')
  expect(graphLook(summary('g', { state: 'success' }))).toBe('success')
  expect(doneText({ success: 4, skipped: 3 }, 7)).toBe('4 of 7 done, 3 skipped')
})

test('of a graph whose tasks are not known, no count falls below zero and no task appears or goes', () => {
  const status = fc.constantFrom('running', 'success', 'failed', 'skipped', 'cancelling', 'cancelled')
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), status)), (changes) => {
      const events = changes.map(([id, to], index) => changed(index + 11, id, to))
      const { counts } = listAfterEvents(
        listOf([summary('g', { counts: { running: 1, pending: 2 } })], undefined, '10'),
        events,
      ).graphs[0]!
      expect(Object.values(counts).every((count) => count > 0)).toBe(true)
      expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(3)
    }),
  )
})

test('of several replicas, each with numbers of its own, the list takes every event and continues after all of them', () => {
  const accepted = (seq: number, graph_id: string, id: string): StreamEvent => ({
    ...{ kind: 'graph_accepted', seq, previous: seq - 1, at: AT, graph_id, task_count: 1, id },
  })
  const list = listAfterEvents(listOf([], undefined, '9-20'), [
    accepted(21, 'x', '9-21'),
    accepted(10, 'y', '10-21'),
    accepted(22, 'z', '10-22'),
  ])
  expect(list.graphs.map(({ graph_id }) => graph_id)).toEqual(['z', 'y', 'x'])
  expect([list.position, list.isBehind]).toEqual(['10-22', false])
  const after = listAfterEvents(list, [{ ...accepted(30, '', '30'), kind: 'reset', graphs: [] }])
  expect([after.graphs, after.position, after.seq]).toEqual([[], '30', 30])
})

test('new graphs come first, the newest on top', () => {
  const accepted = (seq: number, graph_id: string): StreamEvent => ({
    ...{ kind: 'graph_accepted', seq, previous: seq - 1, at: AT, graph_id, task_count: 1 },
  })
  const list = listAfterEvents(listOf([summary('old')], undefined, '10'), [accepted(11, 'x'), accepted(12, 'y')])
  expect(list.graphs.map(({ graph_id }) => graph_id)).toEqual(['y', 'x', 'old'])
})

test('a list that is open for long keeps the newest graphs, and no task of others', () => {
  let list = listOf([], undefined, '0')
  let seq = 0
  const next = (event: object) => ({ seq: ++seq, previous: seq - 1, at: AT, ...event }) as StreamEvent
  for (let batch = 0; batch < 50; batch++) {
    const ids = Array.from({ length: 100 }, (_, index) => `g${batch * 100 + index}`)
    const accepted = ids.map((graph_id) => next({ kind: 'graph_accepted', graph_id, task_count: 2 }))
    const started = ids.map((graph_id) => next({ kind: 'task_changed', graph_id, task_id: 'a', status: 'running' }))
    const ended = ids.filter((_, index) => index % 2 === 0).map((graph_id) => next({ kind: 'graph_ended', graph_id }))
    list = listAfterEvents(list, [...accepted, ...started, ...ended])
  }
  const known = new Set(list.graphs.map(({ graph_id }) => graph_id))
  expect(known.size).toBe(MAX_LISTED_GRAPHS)
  expect(known.has('g4999')).toBe(true)
  expect(list.statuses.size).toBe(MAX_LISTED_GRAPHS / 2)
  expect([...list.statuses.keys()].filter((id) => !known.has(id))).toEqual([])
})

test('a stream is read the same however it is cut', () => {
  const text =
    ': open\n\nid: 1\nevent: task_changed\ndata: {"seq": 1}\n\n: alive\n\nevent: graph_ended\ndata: {"seq": 2}\n\n'
  const all = [
    { kind: 'task_changed', seq: 1, id: '1' },
    { kind: 'graph_ended', seq: 2 },
  ]
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new EventText()
    expect([...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))] as object[]).toEqual(all)
  }
})

const withChildren: GraphDetails = {
  ...detail,
  tasks: [
    { ...detail.tasks[0]!, id: 'map', status: 'running', child_count: 2, children: { pending: 2 } },
    { ...detail.tasks[0]!, id: 'map[0]', parent: 'map' },
  ],
  edges: [],
}

test('a task that gets children, and a child that the page lacks, make it read the graph again', () => {
  const expanded = afterEvents(watchOf(detail, 10), [changed(11, 'a', 'running', { child_count: 3 })])
  expect(expanded.isBehind).toBe(true)
  expect(afterEvents(watchOf(withChildren, 10), [changed(11, 'map', 'running', { child_count: 2 })]).isBehind).toBe(
    false,
  )
  const child = changed(11, 'map[1]', 'running', { parent: 'map' })
  expect(afterEvents(watchOf(withChildren, 10), [child]).isBehind).toBe(true)
  expect(afterEvents(watchOf({ ...withChildren, truncated: true }, 10), [child]).isBehind).toBe(false)
})

test('a task counts its children, also those that the page lacks', () => {
  const after = afterEvents(watchOf({ ...withChildren, truncated: true }, 10), [
    changed(11, 'map[0]', 'running', { parent: 'map' }),
    changed(12, 'map[1]', 'running', { parent: 'map' }),
    changed(13, 'map[0]', 'failed', { parent: 'map' }),
    changed(14, 'map[1]', 'success', { parent: 'map' }),
    changed(15, 'map', 'failed', { child_count: 2 }),
  ])
  expect(after.tasks[0]).toMatchObject({ status: 'failed', child_count: 2, children: { failed: 1, success: 1 } })
  expect(after.tasks[1]).toMatchObject({ id: 'map[0]', parent: 'map', status: 'failed' })
  expect(workWord(after.tasks[0]!)).toBe('noop, 2 of 2')
  expect(workWord(after.tasks[1]!)).toBe('noop')
})

test('children that are newer than the counts of their task in the same answer are counted', () => {
  const detail = { ...withChildren, truncated: false }
  const [parent, ...others] = detail.tasks
  const children = [0, 1].map((index) => ({ ...others[0]!, id: `map[${index}]`, parent: 'map' }))
  const stale = { ...parent!, child_count: 2, children: { pending: 2 } }
  const newer = [stale, ...children.map((child) => ({ ...child, status: 'success' as const }))]
  const watch = watchOf({ ...detail, task_count: 3, tasks: newer }, 10)
  expect(watch.tasks[0]!.children).toEqual({ success: 2 })
  const same = afterEvents(watch, [changed(11, 'map[1]', 'success', { parent: 'map' })])
  expect(same.tasks[0]!.children).toEqual({ success: 2 })
})

test('a graph whose task has ended without all of its children is read again', () => {
  const watch = watchOf({ ...withChildren, truncated: true }, 10)
  const behind = afterEvents(watch, [changed(11, 'map', 'success', { child_count: 2 })])
  expect([watch.isBehind, behind.isBehind]).toEqual([false, true])
})
