/** Goal: a start finds what a crash between any two steps of a snapshot has left. Method: entries and frames by hand. */
import { expect, test } from 'bun:test'
import { GcSchedule } from '../../../control/log/gc-schedule.ts'
import type { Frame } from '../../../control/log/journal-format.ts'
import { encodeStates, groupsOf } from '../../../control/log/journaled-state.ts'
import { Replay } from '../../../control/log/replay.ts'
import { type StoredTask, storedTask, taskEntry } from '../../../control/log/stored-task.ts'
import { whenIn } from '../../../control/rules/when.ts'
import { FanOut } from '../../../control/task/fan-out.ts'
import type { Task } from '../../../control/task/graph.ts'
import { newChildren } from '../../../control/task/new-children.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'

const states = (...rows: unknown[]): Frame =>
  ({ kind: 't', payload: new TextEncoder().encode(JSON.stringify(rows)) }) as Frame

const refuse = (detail: string) => new Error(detail)

/** The entry of a task that waits for `a`, which was deleted and is not in the state file. */
const after = {
  ...{ id: 'after', type: 'os', tool_name: 'noop', depends_on: ['a'], graph_id: 'g', graph_ordinal: 1 },
  ...{ status: 'pending', seq: 0, created_at: 1_000, updated_at: 1_000 },
  settled_dependencies: [{ id: 'a', outcome: 'deleted' }],
} as unknown as StoredTask

const handle = { handle_id: 'a-g-1', handle_taken: true }
const record = { type: 'runtime', tool_name: 'script', retry: 0, graph_id: 'g', params: { script: 'true' } }
const running = (seq: number, rest: object) =>
  states([1, 'a', seq, 'running', 'running', 1, 0, 1_000, 0, 0, null, null, { ...handle, ...rest }])

test('a deleted task of a scoped graph takes no id of the service, even if nothing else is left of its graph', () => {
  const replay = new Replay(new GcSchedule())
  replay.endEntries(refuse)
  replay.apply(running(5, { record: { ...record, graph: { name: 'n', scope: 'graph' } }, deleted: true }), refuse)
  const [graph] = replay.graphs(refuse)
  expect(graph!.options).toEqual({ name: 'n', scope: 'graph' })
  const store = new TaskStore()
  runSync(store.recover(graph!))
  expect([...store.hiddenRunning]).toEqual([...graph!.tasks])
  expect([store.graph('g'), acceptGraph(store, [{ id: 'a', type: 'test' }]).visible]).toEqual([undefined, 1])
})

test('a deleted child that runs elsewhere is a child, and takes no id of the service', () => {
  const before = new TaskStore()
  const parent = acceptGraph(before, [{ id: 'p', type: 'runtime', tool_name: 'script', for_each: [8, 9] }]).tasks[0]!
  const fanOut: FanOut<Task> = new FanOut(parent, [8, 9], 2)
  const children = runSync(newChildren(fanOut))
  before.apply({ kind: 'fanned-out', task: parent, at: 1, fanOut, children })
  const child = children[0]!
  before.apply({ kind: 'attempt-started', task: child, at: 1 })
  child.setRare('handle', { id: 'p[0]-g-1', isTaken: true })
  before.apply({ kind: 'deleted', task: child, at: 1 })
  const replay = new Replay(new GcSchedule())
  for (const task of [parent, children[1]!]) {
    const entry = JSON.parse(JSON.stringify(taskEntry(before, task, task === parent)))
    replay.addEntry(task.id, storedTask(entry), refuse)
  }
  replay.endEntries(refuse)
  replay.apply({ kind: 't', payload: new TextEncoder().encode(encodeStates(groupsOf([child]))) } as Frame, refuse)
  const [graph] = replay.graphs(refuse)
  const [again, first] = graph!.tasks
  expect(first).toMatchObject({ id: 'p[0]', isDeleted: true, goesOnElsewhere: true, childOf: { parent: again } })
  expect([graph!.tasks.length, graph!.live, again!.fanOut!.open]).toEqual([3, 3, 2])
  const later = new TaskStore()
  runSync(later.recover(graph!))
  expect([...later.hiddenRunning]).toEqual([first!])
  expect(acceptGraph(later, [{ id: 'p[0]', type: 'test' }]).visible).toBe(1)
})

test.each([
  ['the segment with its earlier states was removed', []],
  ['a crash has kept that segment', [running(4, {})]],
])('a deleted task that runs elsewhere is what it was when %s', (_, earlier) => {
  const replay = new Replay(new GcSchedule())
  replay.addEntry('after', after, refuse)
  replay.endEntries(refuse)
  for (const frame of [...earlier, running(5, { record, deleted: true })]) replay.apply(frame, refuse)
  const [graph] = replay.graphs(refuse)
  const task = graph!.tasks.find(({ id }) => id === 'a')!
  expect(task).toMatchObject({ type: 'runtime', toolName: 'script', isDeleted: true, attempt: 1 })
  expect(task.params).toEqual({ script: 'true' })
  expect(task.goesOnElsewhere).toBe(true)
})

test.each([
  ['the state file notes it for its dependent', [{ id: 'a', outcome: 'failed', continue_on_error: true }], []],
  [
    'the journal has its last state, and the state file was written between its deletion and its dependent',
    [],
    [states([1, 'a', 5, 'failed', 'failed', 1, 0, 1_000, 0, 0, 0, null, { continue_on_error: true, deleted: true }])],
  ],
])('the failure of a deleted task that does not matter still does not when %s', (_, settled_dependencies, frames) => {
  const replay = new Replay(new GcSchedule())
  replay.addEntry('after', { ...after, settled_dependencies } as unknown as StoredTask, refuse)
  replay.endEntries(refuse)
  for (const frame of frames) replay.apply(frame, refuse)
  const [graph] = replay.graphs(refuse)
  const task = graph!.tasks.find(({ id }) => id === 'a')!
  expect(task).toMatchObject({ status: 'failed', isDeleted: true, continuesOnError: true })
  expect(graph!.hasRules).toBe(true)
})

test('a record that was submitted as a task is a new task, whatever it says of the earlier one', () => {
  const said = { attempt: 3, started_at: '2026-01-01T00:00:00Z', result: 1, run_status: 'success', handle_id: 'h' }
  const task = {
    id: 'a',
    type: 'noop',
    retry: 1,
    ...said,
    parent: 'p',
    index: 0,
    replaced: true,
    deleted: true,
    seq: 9,
  }
  const graph = { graph_ordinal: 1, graph_id: 'g', trace_id: 't', created_at: '2026-01-01T00:00:00Z' }
  const payload = JSON.stringify({ ...graph, body: { tasks: [task] } })
  const replay = new Replay(new GcSchedule())
  replay.endEntries(refuse)
  replay.apply({ kind: 'g', payload: new TextEncoder().encode(payload) } as Frame, refuse)
  const [found] = replay.graphs(refuse)
  expect(found!.live).toBe(1)
  expect(found!.tasks).toMatchObject([
    { id: 'a', status: 'pending', attempt: 0, removal: undefined, options: { retry: 1 } },
  ])
  const { startedAt, result, rare, seq } = found!.tasks[0]!
  expect([startedAt, result, rare.handle, seq]).toEqual([undefined, undefined, undefined, 0])
})

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000)

test.each([
  [
    'journal',
    (replay: Replay, tasks: unknown[]) => {
      const body = tasks.map((task) => JSON.stringify(task).replace('"DEEP"', DEEP)).join(',')
      const payload = `{"graph_ordinal":1,"graph_id":"g","trace_id":"t","created_at":"2026-01-01T00:00:00Z","body":{"tasks":[${body}]}}`
      replay.endEntries(refuse)
      replay.apply({ kind: 'g', payload: new TextEncoder().encode(payload) } as Frame, refuse)
    },
  ],
  [
    'state file',
    (replay: Replay, tasks: unknown[]) => {
      for (const task of tasks as StoredTask[]) {
        const entry = JSON.parse(
          JSON.stringify({ ...after, depends_on: [], settled_dependencies: [], ...task }).replace('"DEEP"', DEEP),
        ) as StoredTask
        replay.addEntry(entry.id, entry, refuse)
      }
      replay.endEntries(refuse)
    },
  ],
])('a condition that is too deep, of an earlier version, loses its test: from the %s', (_, load) => {
  const replay = new Replay(new GcSchedule())
  const when = { $from: 'a', default: 1, equals: 'DEEP' }
  load(replay, [
    { id: 'a', type: 'noop' },
    { id: 'b', type: 'noop', depends_on: ['a'], when },
  ])
  const [graph] = replay.graphs(refuse)
  const task = graph!.tasks.find(({ id }) => id === 'b')!
  const store = new TaskStore()
  runSync(store.recover(graph!))
  expect(JSON.parse(JSON.stringify(taskEntry(store, task, false)))).toMatchObject({ id: 'b', when: { $from: 'a' } })
  expect(whenIn(task.options.when!)).toBe('when: expected exactly one of equals, not, in, matches')
})
