/**
 * Goal: whenever the service is killed, a deleted graph is wholly there or wholly gone, and no other graph is affected.
 * Method: random submissions, ends, deletions and snapshots with the real journal. After each of them a start is made from a
 * copy of the files, also of those between two steps of a deletion and of a snapshot.
 */
import { expect, test } from 'bun:test'
import { copyFileSync, readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Graph } from '../../../control/graph/graph.ts'
import { DiskReserve } from '../../../control/journal/disk-reserve.ts'
import { IdempotencyKeys } from '../../../control/journal/idempotency.ts'
import { Journal } from '../../../control/journal/journal.ts'
import { Persistence } from '../../../control/journal/persistence.ts'
import { recover } from '../../../control/journal/recovery.ts'
import { ResultFiles } from '../../../control/journal/result-files.ts'
import { Snapshots } from '../../../control/journal/snapshots.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import { silentLog } from '../../../shared/log.ts'
import { runSync } from '../../../shared/steps.ts'
import { newEvents } from '../../support/events.ts'
import { graphOf } from '../../support/graph.ts'
import { tempDir } from '../../support/temp.ts'

const log = silentLog()

/** Ids of the visible tasks of each graph. */
type Seen = Readonly<Record<string, readonly string[]>>

const seenOf = (graphs: Iterable<Graph>): Seen =>
  Object.fromEntries(
    [...graphs]
      .map(({ id, tasks, isRetired }) => [id, isRetired ? [] : tasks.filter(({ isDeleted }) => !isDeleted)] as const)
      .filter(([, tasks]) => tasks.length > 0)
      .map(([id, tasks]) => [id, tasks.map((task) => task.id)]),
  )

function world() {
  const dir = tempDir()
  const store = new TaskStore()
  const journal = new Journal({ dataDir: dir.path, oldestSegment: 1, firstSegment: 1, log, syncFile: async () => {} })
  const options = {
    ...{ store, journal, dataDir: dir.path, log, intervalMs: 3_600_000, isStateFileBehind: false },
    idempotencyKeys: new IdempotencyKeys(),
    resultFiles: new ResultFiles(dir.path, [], log),
    ...newEvents(dir.path, journal),
  }
  const persistence = new Persistence({ ...options, reserve: new DiskReserve(dir.path) })
  const snapshots = new Snapshots(options, { flush: () => persistence.flush(), carry: () => {} })
  const end = async () => {
    await persistence.stop()
    dir[Symbol.dispose]()
  }
  return { dir: dir.path, store, persistence, snapshots, [Symbol.asyncDispose]: end }
}
type World = ReturnType<typeof world>

const filesIn = (dir: string) => readdirSync(dir).filter((name) => /^(state\.json|journal-.*\.log)$/.test(name))
const lastSegment = (dir: string) =>
  filesIn(dir)
    .filter((name) => name.startsWith('journal'))
    .sort()
    .at(-1)!

/** What a start finds in copies of the files of `dirs`; of two with the same name, the later one counts. */
async function found(dirs: readonly string[], cutBytes = 0): Promise<Seen> {
  using copy = tempDir()
  for (const dir of dirs) for (const name of filesIn(dir)) copyFileSync(join(dir, name), join(copy.path, name))
  if (cutBytes > 0) {
    const path = join(copy.path, lastSegment(copy.path))
    truncateSync(path, readFileSync(path).length - cutBytes)
  }
  return seenOf((await recover(copy.path)).graphs)
}

async function submit({ store, persistence }: World, ids: readonly string[]): Promise<void> {
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

function endAll({ store }: World, graph: Graph, at: number): void {
  for (const task of graph.tasks) {
    if (task.isTerminal) continue
    store.apply({ kind: 'attempt-started', task, at })
    store.apply({ kind: 'ended', task, at, ending: { status: 'success', result: { at } } })
  }
}

/** A deletion as the operation does it, with a start after each of its steps. */
async function deleteGraph(w: World, graph: Graph, cut: number): Promise<void> {
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
async function snapshot({ dir, store, snapshots }: World): Promise<void> {
  using before = tempDir()
  for (const name of filesIn(dir)) copyFileSync(join(dir, name), join(before.path, name))
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
      await using w = world()
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
  await using w = world()
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
  using copy = tempDir()
  for (const name of filesIn(w.dir)) copyFileSync(join(w.dir, name), join(copy.path, name))
  expect((await recover(copy.path)).idempotencyKeys).toHaveLength(1)
})
