/**
 * Goal: an event that a crash has cut off tells the state of its moment, not a later one. Method: changes in the journal of
 * tasks that changed again since, and a start from a copy of the files.
 */
import { expect, test } from 'bun:test'
import { eventsOf } from '../../../control/log/event-rows.ts'
import { LostEvents } from '../../../control/log/lost-events.ts'
import { recover } from '../../../control/log/recovery.ts'
import type { Task } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { crashedCopy, type DurableStore, durableStore, isStateFile } from '../../support/durable-store.ts'
import { acceptGraph, graphOf } from '../../support/graph.ts'

/** A task whose attempt has started. */
async function begunTask({ store, persistence }: DurableStore): Promise<Task> {
  const tasks = [{ id: 'a', type: 'test' }]
  const graph = graphOf(tasks)
  runSync(store.claim(graph))
  await persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks })))
  store.apply({ kind: 'graph-accepted', graph })
  const task = graph.tasks[0]!
  store.apply({ kind: 'attempt-started', task, at: 1_000 })
  return task
}

/** What a start finds after a kill. */
async function foundIn(dir: string) {
  using copy = crashedCopy([dir], (name) => isStateFile(name) || name.startsWith('events-'))
  return (await recover(copy.path)).history
}

test('what a start made of an interrupted attempt is told as it was, though the task ended since', async () => {
  await using w = durableStore()
  const { store, persistence } = w
  const task = await begunTask(w)
  persistence.flush()
  for (const numbered of (await foundIn(w.dir)).unnumbered) persistence.noteNumbered(numbered(store.nextSeq(), 2_000))
  persistence.flush()
  store.apply({ kind: 'ended', task, at: 3_000, ending: { status: 'success', result: 1 } })
  persistence.flush()

  const { lost, unnumbered } = await foundIn(w.dir)
  expect(unnumbered).toEqual([])
  const told = eventsOf(lost).map((event) => ('status' in event ? { ...event, seq: undefined } : event.event))
  const at = (ms: number) => new Date(ms).toISOString()
  const same = {
    event: 'task_changed',
    graph_id: task.graph.id,
    task_id: 'a',
    type: 'test',
    attempt: 1,
    started_at: at(1_000),
  }
  expect(told).toMatchObject([
    'graph_accepted',
    { ...same, at: at(1_000), status: 'running' },
    { ...same, at: at(2_000), status: 'pending' },
    { ...same, at: at(3_000), status: 'success', finished_at: at(3_000) },
    'graph_ended',
  ])
  expect(told[2]).not.toHaveProperty('finished_at')
})

test.each([
  ['was being cancelled', true, 'cancelled'],
  ['was interrupted', false, 'pending'],
])('what one start told of a task that %s, the next one does not tell again', async (_, isCancelling, status) => {
  await using w = durableStore()
  const { store, persistence } = w
  const task = await begunTask(w)
  if (isCancelling) store.apply({ kind: 'cancel-requested', task, at: 1_500 })
  persistence.flush()
  /** What a start tells, and keeps, before it is killed. */
  const start = async (): Promise<readonly (string | undefined)[][]> => {
    const { unnumbered } = await foundIn(w.dir)
    const told = unnumbered.map((change) => change(store.nextSeq(), 2_000))
    for (const change of told) persistence.noteNumbered(change)
    persistence.flush()
    return told.map((change) => [change.kind, 'moment' in change ? change.moment.status : undefined])
  }
  const ends = isCancelling ? [['ended', undefined]] : []
  expect(await start()).toEqual([['recovered', status], ...ends])
  expect(await start()).toEqual([])
  if (isCancelling) return
  store.apply({ kind: 'attempt-started', task, at: 3_000 }) // what changes after that is told
  persistence.flush()
  expect((await start()).map(([kind]) => kind)).toEqual(['recovered'])
})

test.each([
  ['has not changed since: its present state', 99, { status: 'success', finished_at: '1970-01-01T00:00:00.002Z' }],
  ['changed since: it was pending', 1, { status: 'pending', finished_at: undefined }],
])('in a journal of an earlier version, of a task that %s', (_, seq, state) => {
  const store = new TaskStore()
  const graph = acceptGraph(store, [{ id: 'a', type: 'test' }])
  const task = graph.tasks[0]!
  store.apply({ kind: 'attempt-started', task, at: 1 })
  store.apply({ kind: 'ended', task, at: 2, ending: { status: 'success', result: 1 } })
  const payload = new TextEncoder().encode(JSON.stringify([[graph.ordinal, null, seq, 5, 'recovered', 'a']]))
  const [event] = eventsOf(new LostEvents([graph]).rowsAfter(0, [{ kind: 't', payload } as never]))
  expect({ finished_at: undefined, ...event }).toMatchObject({ seq, at: '1970-01-01T00:00:00.005Z', ...state })
})
