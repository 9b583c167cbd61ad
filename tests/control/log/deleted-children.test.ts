/**
 * Goal: whenever the service is killed while the children of a deleted task are being deleted, each of them is gone, and its
 * deletion is told once. Method: random deletions and snapshots with the real journal; then a start from a copy of the files,
 * and another one after it has told what it found.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventHistory } from '../../../control/log/event-history.ts'
import { eventsOf, type NumberedChange, rowOfChange } from '../../../control/log/event-rows.ts'
import { recover } from '../../../control/log/recovery.ts'
import { FanOut } from '../../../control/task/fan-out.ts'
import type { Task } from '../../../control/task/graph.ts'
import { newChildren } from '../../../control/task/new-children.ts'
import type { ServiceEvent } from '../../../shared/contract/events.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { crashedCopy, type DurableStore, durableStore } from '../../support/durable-store.ts'
import { graphOf, taskIn } from '../../support/graph.ts'

/** A graph of the task `p`, which runs for `count` elements, and a task that stays. */
async function world(w: DurableStore, count: number): Promise<FanOut<Task>> {
  const items = Array.from({ length: count }, (_, i) => i)
  const tasks = [
    { id: 'p', type: 'test', for_each: items },
    { id: 'other', type: 'test' },
  ]
  const graph = graphOf(tasks)
  runSync(w.store.claim(graph))
  await w.persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks })))
  w.store.apply({ kind: 'graph-accepted', graph })
  end(w, taskIn(graph, 'other'))
  const task = taskIn(graph, 'p')
  await w.persistence.appendFanOut(task, { count })
  const fanOut: FanOut<Task> = new FanOut(task, items, count)
  w.store.apply({ kind: 'fanned-out', task, at: 1, fanOut, children: runSync(newChildren(fanOut)) })
  return fanOut
}

function end({ store }: DurableStore, task: FanOut<Task>['parent']): void {
  if (task.status === 'pending') store.apply({ kind: 'attempt-started', task, at: 2 })
  store.apply({ kind: 'ended', task, at: 3, ending: { status: 'success', result: 1 } })
}

/** What a start from copies of the files tells: events of the history, and changes that get their numbers only now. */
async function told(dir: string) {
  using copy = crashedCopy([dir], (name) => /\.(json|log)$/.test(name))
  const { graphs, history, lastSeq } = await recover(copy.path)
  const { found, kept, lost, unnumbered } = history
  const again = new EventHistory({ dataDir: copy.path, found, kept, lastSeq, maxEvents: 1_000, log: silentLog() })
  again.append(lost)
  again.flush()
  const events: ServiceEvent[] = []
  for await (const some of again.read({ after: 0, upTo: again.last })) events.push(...some)
  await again.close()
  const changes: NumberedChange[] = unnumbered.map((numbered, i) => numbered(lastSeq + 1 + i, 9))
  return { graphs, events: [...events, ...eventsOf(changes.map(rowOfChange))], changes }
}

const deletedIn = (events: readonly ServiceEvent[]): string[] =>
  events.flatMap((event) => (event.event === 'task_deleted' ? event.task_id : []))

const given = fc
  .record({ count: fc.integer({ min: 1, max: 6 }), isFlushed: fc.boolean(), isParentEnded: fc.boolean() })
  .chain((some) =>
    fc.record({
      ...{ some: fc.constant(some), ended: fc.nat(some.count), deleted: fc.nat(some.count) },
      /** Deletions, that of the parent included, before the snapshot; more than there are: none is taken. */
      snapshotAfter: fc.nat(some.count + 3),
    }),
  )

test('children of a deleted task are told to be deleted, each once', async () => {
  await fc.assert(
    fc.asyncProperty(given, async ({ some: { count, isFlushed, isParentEnded }, ended, deleted, snapshotAfter }) => {
      await using w = durableStore()
      const { dir, store, persistence, snapshots } = w
      const fanOut = await world(w, count)
      const { parent } = fanOut
      for (let i = 0; i < ended; i++) end(w, fanOut.child(i))
      if (isParentEnded && ended === count) end(w, parent)
      const children = Array.from({ length: count }, (_, i) => fanOut.child(i))
      const toDelete = [parent, ...children.slice(0, deleted)]
      for (const [i, task] of toDelete.entries()) {
        if (snapshotAfter === i) await snapshots.takeLast()
        store.apply({ kind: 'deleted', task, at: 4 })
        persistence.flush()
      }
      if (snapshotAfter === toDelete.length) await snapshots.takeLast()
      if (isFlushed) w.history.flush()

      const all = ['p', ...children.map(({ id }) => id)].sort()
      const first = await told(dir)
      expect(deletedIn(first.events).sort()).toEqual(all)
      const ends = first.events.filter(({ event }) => event === 'graph_ended').length
      expect(ends).toBeLessThanOrEqual(1)
      if (ended < count && deleted < count) expect(ends).toBe(1) // the last pending child was deleted by the start
      const left = first.graphs.flatMap(({ tasks }) => tasks.filter(({ isDeleted }) => !isDeleted))
      expect(left.map(({ id }) => id)).toEqual(['other'])

      // That start was killed before it wrote the state file anew.
      for (const change of first.changes) persistence.noteNumbered({ ...change, seq: store.nextSeq() })
      persistence.flush()
      const second = await told(dir)
      expect(deletedIn(second.events).sort()).toEqual(all)
      expect(second.changes).toEqual([])
    }),
    { numRuns: 80 },
  )
}, 120_000)
