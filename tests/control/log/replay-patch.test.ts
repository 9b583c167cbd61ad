/** Goal: a start finds what patches made of graphs, whatever a crash has left of the log. Method: frames and entries by hand. */
import { expect, test } from 'bun:test'
import { GcSchedule } from '../../../control/log/gc-schedule.ts'
import type { Frame } from '../../../control/log/journal-format.ts'
import { Mentions } from '../../../control/log/mentions.ts'
import { Replay } from '../../../control/log/replay.ts'
import type { StoredTask } from '../../../control/log/stored-task.ts'

const frame = (kind: 'g' | 'm' | 't', value: unknown): Frame =>
  ({ kind, payload: new TextEncoder().encode(JSON.stringify(value)) }) as Frame

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const graph = (graph_ordinal: number, ...tasks: object[]) =>
  frame('g', {
    ...{ graph_ordinal, graph_id: `graph-${graph_ordinal}`, trace_id: 't', created_at: '2030-01-01T00:00:00.000Z' },
    body: { tasks },
  })
const patch = (graph_ordinal: number, seq: number, revision: number, more: object) =>
  frame('m', { graph_ordinal, patched: { revision }, seq, at: 1, remove: [], replaced: [], tasks: [], ...more })
const ended = (ordinal: number, id: string, seq: number) =>
  frame('t', [[ordinal, id, seq, 'success', 'success', 1, 0, 1_000, 0, 0, 0, null, {}]])

const refuse = (detail: string) => new Error(detail)

/** The graphs after these frames, as a start reads them. */
function replayed(frames: readonly Frame[], entries: readonly StoredTask[] = []) {
  const mentions = new Mentions()
  for (const each of frames) mentions.add(each)
  const replay = new Replay(new GcSchedule(), mentions)
  for (const entry of entries) replay.addEntry(`${entry.graph_ordinal}/${entry.id}`, entry, refuse)
  replay.endEntries(refuse)
  for (const each of frames) replay.note(each)
  for (const each of frames) replay.apply(each, refuse)
  return { lastSeq: replay.lastSeq, graphs: replay.graphs(refuse) }
}

const tasksOf = (frames: readonly Frame[], entries?: readonly StoredTask[]) =>
  replayed(frames, entries).graphs.map(({ tasks }) =>
    tasks.map(({ id, status, removal }) => [id, status, ...(removal === undefined ? [] : [removal])].join(' ')),
  )

test('tasks go, come last, and keep their places when they are replaced', () => {
  const frames = [
    graph(1, noop('a'), noop('b', 'a'), noop('c')),
    patch(1, 7, 1, { remove: ['b', 'c'], replaced: ['b'], tasks: [{ ...noop('b'), priority: 3 }, noop('d', 'b')] }),
  ]
  const { graphs, lastSeq } = replayed(frames)
  expect(graphs[0]!.tasks.map(({ id, priority, rare }) => [id, priority, rare.added])).toEqual([
    ['a', 0, undefined],
    ['b', 3, 1],
    ['d', 0, 1],
  ])
  expect([graphs[0]!.patched, lastSeq]).toEqual([{ revision: 1 }, 7])
})

test('a state from before the patch is not that of the new definition', () => {
  const frames = [graph(1, noop('a')), patch(1, 7, 1, { remove: ['a'], replaced: ['a'], tasks: [noop('a')] })]
  expect(tasksOf([...frames, ended(1, 'a', 6)])).toEqual([['a pending']])
  expect(tasksOf([...frames, ended(1, 'a', 8)])).toEqual([['a success']])
})

test('an id goes from the graph that ended with it to a patched one, and on to a later graph', () => {
  const frames = [
    graph(1, noop('x')),
    ended(1, 'x', 2),
    graph(2, noop('y')),
    patch(2, 4, 1, { tasks: [noop('x')] }),
    ended(2, 'x', 5),
    graph(3, noop('x')),
  ]
  expect(tasksOf(frames.slice(0, 4))).toEqual([['x success replaced'], ['y pending', 'x pending']])
  expect(tasksOf(frames)).toEqual([['x success replaced'], ['y pending', 'x success replaced'], ['x pending']])
})

test('a graph that was packed after the patch has what is left of it, though a crash kept the earlier segments', () => {
  const entry = (id: string, more: object) =>
    ({
      ...{ id, type: 'os', tool_name: 'noop', graph_id: 'graph-1', graph_ordinal: 1, trace_id: 't', created_at: 1_000 },
      ...{ status: 'pending', seq: 7, ...more },
    }) as unknown as StoredTask
  const frames = [
    graph(1, noop('a'), noop('gone')),
    patch(1, 7, 1, { remove: ['gone'], tasks: [noop('kept'), noop('deleted')] }),
  ]
  const packed = [entry('a', { seq: 0, patched: { revision: 1 } }), entry('kept', { status: 'success', seq: 9 })]
  expect(tasksOf(frames, packed)).toEqual([['a pending', 'kept success', 'deleted pending deleted']])
})

test('a graph that was revoked or deleted stays so', () => {
  const gone = { kind: 'd', payload: new TextEncoder().encode('{"graph_ordinal":1}') } as Frame
  expect(tasksOf([graph(1, noop('a')), patch(1, 7, 1, { tasks: [noop('b')] }), gone])).toEqual([])
})
