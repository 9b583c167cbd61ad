/**
 * Goal: whenever the service is killed, a deleted graph is wholly there or wholly gone, and no other graph is affected.
 * Method: random submissions, ends, deletions and snapshots with the real journal. After each of them a start is made from a
 * copy of the files, also of those between two steps of a deletion and of a snapshot.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { recover } from '../../../control/log/recovery.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { crashedCopy, type DurableStore, durableStore, isStateFile, lastSegment } from '../../support/durable-store.ts'
import { graphOf } from '../../support/graph.ts'

/** Ids of the visible tasks of each graph. */
type Seen = Readonly<Record<string, readonly string[]>>

const seenOf = (graphs: Iterable<Graph>): Seen =>
  Object.fromEntries(
    [...graphs]
      .map(({ id, tasks, isRetired }) => [id, isRetired ? [] : tasks.filter(({ isDeleted }) => !isDeleted)] as const)
      .filter(([, tasks]) => tasks.length > 0)
      .map(([id, tasks]) => [id, tasks.map((task) => task.id)]),
  )

/** What a start finds in copies of the files of `dirs`; of two with the same name, the later one counts. */
async function found(dirs: readonly string[], cutBytes = 0): Promise<Seen> {
  using copy = crashedCopy(dirs, isStateFile, cutBytes)
  return seenOf((await recover(copy.path)).graphs)
}

async function submit({ store, persistence }: DurableStore, ids: readonly string[]): Promise<void> {
  const tasks = ids.map((id, i) => ({ id, type: 'test', ...(i > 0 && { depends_on: [ids[0]!] }) }))
  const graph = graphOf(tasks)
  try {
    runSync(store.claim(graph))
  } catch {
    return // an id is in use
  }
  await persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks })))
  store.apply({ kind: 'graph-accepted', graph })
}

function endAll({ store }: DurableStore, graph: Graph, at: number): void {
  for (const task of graph.tasks) {
    if (task.isTerminal) continue
    store.apply({ kind: 'attempt-started', task, at })
    store.apply({ kind: 'ended', task, at, ending: { status: 'success', result: { at } } })
  }
}

/** A deletion as the operation does it, with a start after each of its steps. */
async function deleteGraph(w: DurableStore, graph: Graph, cut: number): Promise<void> {
  const { dir, store, persistence } = w
  persistence.flush()
  const before = seenOf(store.graphs)
  const sizeBefore = readFileSync(join(dir, lastSegment(dir))).length
  persistence.deleteGraph(graph)
  const { [graph.id]: _, ...after } = before
  expect(await found([dir])).toEqual(after)
  const frameBytes = readFileSync(join(dir, lastSegment(dir))).length - sizeBefore
  if (frameBytes > 0) expect(await found([dir], 1 + (cut % frameBytes))).toEqual(before)
  store.apply({ kind: 'graph-retired', graph, at: 9 })
  expect(seenOf(store.graphs)).toEqual(after)
}

/** A snapshot, with a start from the new state file and the older segments, which it removes last. */
async function snapshot({ dir, store, snapshots }: DurableStore): Promise<void> {
  using before = crashedCopy([dir], isStateFile)
  await snapshots.takeLast()
  expect(await found([before.path, dir])).toEqual(seenOf(store.graphs))
}

const step = fc.oneof(
  fc.record({
    kind: fc.constant('submit' as const),
    ids: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
  }),
  fc.record({ kind: fc.constantFrom('end' as const, 'delete' as const), pick: fc.nat(), cut: fc.nat() }),
  fc.record({ kind: fc.constant('snapshot' as const) }),
)

test('whenever the service is killed, a deleted graph is wholly there or wholly gone', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      await using w = durableStore()
      for (const given of steps) {
        const graphs = [...w.store.graphs].filter(({ isRetired, visible }) => !isRetired && visible > 0)
        if (given.kind === 'submit') await submit(w, given.ids)
        else if (given.kind === 'snapshot') await snapshot(w)
        else if (graphs.length > 0) {
          const graph = graphs[given.pick % graphs.length]!
          endAll(w, graph, 1_000)
          if (given.kind === 'delete') await deleteGraph(w, graph, given.cut)
        }
        w.persistence.flush()
        expect(await found([w.dir])).toEqual(seenOf(w.store.graphs))
      }
    }),
    { numRuns: 80 },
  )
}, 120_000)

test('the key of a deleted graph still gets its first answer after a restart', async () => {
  await using w = durableStore()
  const tasks = [{ id: 'a', type: 'test' }]
  const graph = graphOf(tasks)
  runSync(w.store.claim(graph))
  const key = { name: 'tasks key', digest: 'digest', answer: '{}', at: Date.now() }
  await w.persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks })), {
    idempotency: key as never,
  })
  w.store.apply({ kind: 'graph-accepted', graph })
  endAll(w, graph, 1_000)
  await deleteGraph(w, graph, 0)
  using copy = crashedCopy([w.dir], isStateFile)
  expect((await recover(copy.path)).notes.of('key').size).toBe(1)
})
