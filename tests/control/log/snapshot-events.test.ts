/**
 * Goal: a change that the journal or a state file holds has an event, whenever the service is killed.
 * Method: a graph ends while its snapshot is being written, or loses its last task before the history reached the disk. A
 * start is made from a copy of the files of that moment.
 */
import { expect, test } from 'bun:test'
import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { EventHistory } from '../../../control/log/event-history.ts'
import { recover } from '../../../control/log/recovery.ts'
import type { ServiceEvent } from '../../../shared/contract/events.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { durableStore, liveCopy } from '../../support/durable-store.ts'
import { graphOf } from '../../support/graph.ts'

const log = silentLog()

/** The events that a client hears who asks a start from `dataDir` for all of them. */
async function eventsAfterAStart(dataDir: string): Promise<ServiceEvent[]> {
  const { lastSeq, history } = await recover(dataDir)
  const { found, kept, lost, unnumbered } = history
  const again = new EventHistory({ dataDir, found, kept, lastSeq, maxEvents: 1_000, log })
  again.append(lost)
  again.flush()
  const events: ServiceEvent[] = []
  for await (const some of again.read({ after: 0, upTo: again.last })) events.push(...some)
  await again.close()
  expect(unnumbered.length).toBe(0)
  return events
}

/** A service without doors, with a graph of one running task. */
async function world() {
  const durable = durableStore()
  const { store, persistence } = durable
  const tasks = [{ id: 'a', type: 'test' }]
  const graph = graphOf(tasks)
  runSync(store.claim(graph))
  await persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks })))
  store.apply({ kind: 'graph-accepted', graph })
  const task = graph.tasks[0]!
  store.apply({ kind: 'attempt-started', task, at: 1 })
  const end = () => store.apply({ kind: 'ended', task, at: 2, ending: { status: 'success', result: 1 } })
  return { ...durable, task, end }
}

/** Takes a snapshot. `change` is called right before the state file is written, when the history was synced. */
async function takeWith({ history, snapshots }: Awaited<ReturnType<typeof world>>, change: () => void): Promise<void> {
  const sync = history.sync.bind(history)
  history.sync = async (last) => {
    history.sync = sync
    await sync(last)
    change()
  }
  await snapshots.takeLast()
}

test('what happens while the state file is written is in the history of the next start', async () => {
  await using w = await world()
  await takeWith(w, w.end)
  using copy = liveCopy([w.dir])

  const heard = await eventsAfterAStart(copy.path)
  expect(heard.map((event) => [event.event, 'status' in event ? event.status : undefined])).toEqual([
    ['graph_accepted', undefined],
    ['task_changed', 'running'],
    ['task_changed', 'success'],
    ['graph_ended', undefined],
  ])
})

test('a kill does not hide how a graph ended whose tasks were all deleted since', async () => {
  await using w = await world()
  w.persistence.flush()
  w.history.flush()
  using copy = liveCopy([w.dir])
  w.end()
  w.persistence.flush()
  w.store.apply({ kind: 'deleted', task: w.task, at: 3 })
  w.persistence.flush()
  // The journal reached the disk, the history did not.
  for (const name of readdirSync(w.dir))
    if (name.startsWith('journal')) copyFileSync(join(w.dir, name), join(copy.path, name))

  const heard = await eventsAfterAStart(copy.path)
  expect(heard.map(({ event }) => event)).toEqual([
    'graph_accepted',
    'task_changed',
    'task_changed',
    'graph_ended',
    'task_deleted',
  ])
})

test('nor does a kill right after a state file that lacks the graph', async () => {
  await using w = await world()
  await takeWith(w, () => {
    w.end()
    w.store.apply({ kind: 'deleted', task: w.task, at: 3 })
  })
  using copy = liveCopy([w.dir])

  const heard = await eventsAfterAStart(copy.path)
  expect(heard.map(({ event }) => event)).toEqual(['graph_accepted', 'task_changed', 'graph_ended', 'task_deleted'])
})
