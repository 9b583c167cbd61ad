/**
 * Goal: whatever graphs do with ids, a restart finds each task where it was: under its id, or below its graph.
 * Method: a real store and journal, and a simple model of both. Graphs are submitted, scoped or not, end and replace
 * each other, tasks are deleted, graphs are retired; restarts happen after a crash, after a snapshot, and after a
 * snapshot that was killed before it removed the older segments.
 */
import { describe, expect, test } from 'bun:test'
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { Journal } from '../../../control/log/journal.ts'
import { Notes } from '../../../control/log/notes.ts'
import { Persistence } from '../../../control/log/persistence.ts'
import { recover } from '../../../control/log/recovery.ts'
import { ResultFiles } from '../../../control/log/result-files.ts'
import { writeSnapshot } from '../../../control/log/snapshot-writer.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../../../control/rules/graph-options.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import type { ServiceError } from '../../../shared/contract/errors.ts'
import { DiskReserve } from '../../../shared/files/disk-reserve.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { newEvents } from '../../support/events.ts'
import { acceptGraph, acceptScoped, graphOf } from '../../support/graph.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

const log = silentLog()
const POOL = ['a', 'b', 'c', 'd'] as const

/** How a service ends, seen from the next one. */
const ENDINGS = ['crash', 'snapshot', 'killed before the old segments were removed'] as const

/** A service without tasks that run: its store, and what it writes. */
class Service {
  store = new TaskStore()
  #persistence: Persistence | undefined
  #journal: Journal | undefined

  constructor(readonly dir: string) {}

  async start(): Promise<void> {
    const { dir } = this
    const recovered = await recover(dir)
    const { graphs, lastSeq, lastOrdinal, segments } = recovered
    const store = new TaskStore({ lastSeq, lastOrdinal })
    this.store = store
    for (const graph of graphs) runSync(store.recover(graph))
    const [oldestSegment, firstSegment] = segments === undefined ? [1, 1] : [segments.oldest, segments.newest + 1]
    this.#journal = new Journal({ dataDir: dir, oldestSegment, firstSegment, log, syncFile: async () => {} })
    const options = {
      ...{ store, journal: this.#journal, dataDir: dir, log, intervalMs: 3_600_000 },
      notes: new Notes(),
      resultFiles: new ResultFiles(dir, graphs, log),
      ...newEvents(dir, this.#journal),
      reserve: new DiskReserve(dir),
    }
    this.#persistence = new Persistence(options, recovered)
  }

  /** As POST /tasks does it. Undefined: refused with 409. */
  async submit(ids: readonly string[], options: GraphOptions): Promise<Graph | undefined> {
    const tasks = ids.map((id) => ({ id, type: 'test' }))
    const graph = graphOf(tasks, 1_000, undefined, options)
    try {
      runSync(this.store.claim(graph))
    } catch (error) {
      expect((error as ServiceError).status).toBe(409)
      return undefined
    }
    if (this.store.replaces(graph)) this.#persistence!.assertWritable()
    const body = new TextEncoder().encode(JSON.stringify({ ...options, tasks }))
    await this.#persistence!.appendGraph(graph, body)
    this.store.apply({ kind: 'graph-accepted', graph })
    return graph
  }

  async end(how: (typeof ENDINGS)[number]): Promise<void> {
    const { dir } = this
    await this.#persistence!.durable()
    if (how === 'crash') {
      this.#journal!.checkDirectory()
      await this.#journal!.close()
      return
    }
    using aside: TempDir = tempDir()
    const older = how === 'snapshot' ? [] : readdirSync(dir).filter((name) => /^(pack|journal)-.*\.log$/.test(name))
    for (const name of older) copyFileSync(join(dir, name), join(aside.path, name))
    await this.#persistence!.stop()
    for (const name of older) copyFileSync(join(aside.path, name), join(dir, name))
  }
}

interface ModelGraph {
  readonly id: string
  readonly options: GraphOptions
  /** What callers see of each task below the graph. */
  readonly tasks: Map<string, { hasEnded: boolean; isReplaced: boolean }>
  isRetired: boolean
}

class Model {
  readonly graphs: ModelGraph[] = []
  readonly holders = new Map<string, ModelGraph>()

  isTaken(id: string): boolean {
    return this.holders.get(id)?.tasks.get(id)?.hasEnded === false
  }

  accept(id: string, options: GraphOptions, ids: readonly string[]): void {
    const tasks = new Map(ids.map((task) => [task, { hasEnded: false, isReplaced: false }]))
    const graph = { id, options, tasks, isRetired: false }
    this.graphs.push(graph)
    if (options.scope === 'graph') return
    for (const task of ids) {
      const holder = this.holders.get(task)
      if (holder !== undefined) holder.tasks.get(task)!.isReplaced = true
      this.holders.set(task, graph)
    }
  }

  remove(graph: ModelGraph, id: string): void {
    graph.tasks.delete(id)
    if (this.holders.get(id) === graph) this.holders.delete(id)
  }
}

function expectAgreement({ graphs, holders }: Model, store: TaskStore): void {
  for (const id of POOL) expect([id, store.get(id)?.graph.id]).toEqual([id, holders.get(id)?.id])
  for (const { id, options, tasks } of graphs) {
    const graph = store.graph(id)
    expect([id, graph === undefined]).toEqual([id, tasks.size === 0])
    if (graph === undefined) continue
    expect(graph.options).toEqual(options)
    const seen = POOL.flatMap((name) => {
      const task = store.taskIn(graph, name)
      return task === undefined ? [] : [[name, { hasEnded: task.isTerminal, isReplaced: task.isReplaced }] as const]
    })
    expect(new Map(seen)).toEqual(new Map(POOL.flatMap((name) => (tasks.has(name) ? [[name, tasks.get(name)!]] : []))))
  }
  expect(store.taskCount).toBe(graphs.reduce((sum, { tasks }) => sum + tasks.size, 0))
}

const anyOptions = fc.constantFrom<GraphOptions>(
  NO_GRAPH_OPTIONS,
  { name: 'n' },
  { scope: 'graph' },
  { scope: 'graph', labels: { a: 'b' } },
)
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      ids: fc.uniqueArray(fc.constantFrom(...POOL), { minLength: 1 }),
      options: anyOptions,
      ends: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), graph: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('delete' as const), graph: fc.nat(), id: fc.constantFrom(...POOL) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('retire' as const), graph: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('restart' as const), how: fc.constantFrom(...ENDINGS) }) },
)

test('a restart finds every task under its id or below its graph, as a model does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      using dir = tempDir()
      const service = new Service(dir.path)
      const model = new Model()
      await service.start()
      const end = (graph: ModelGraph) => {
        for (const [id, task] of graph.tasks) {
          if (task.hasEnded) continue
          const known = service.store.taskIn(service.store.graph(graph.id)!, id)!
          service.store.apply({ kind: 'attempt-started', task: known, at: 2_000 })
          service.store.apply({ kind: 'ended', task: known, at: 2_000, ending: { status: 'success', result: id } })
          task.hasEnded = true
        }
      }
      for (const each of [...steps, { kind: 'restart', how: 'crash' } as const]) {
        const { store } = service
        const graph = 'graph' in each ? model.graphs[each.graph % model.graphs.length] : undefined
        if (each.kind === 'submit') {
          const isFree = each.options.scope === 'graph' || !each.ids.some((id) => model.isTaken(id))
          const accepted = await service.submit(each.ids, each.options)
          expect(accepted !== undefined).toBe(isFree)
          if (accepted !== undefined) model.accept(accepted.id, each.options, each.ids)
          if (accepted !== undefined && each.ends) end(model.graphs.at(-1)!)
        } else if (each.kind === 'restart') {
          await service.end(each.how)
          await service.start()
          // Retirement is not in the journal: after a crash, retention comes to the same result again.
          for (const { id, isRetired } of model.graphs) {
            const back = isRetired ? service.store.graph(id) : undefined
            if (back !== undefined) service.store.apply({ kind: 'graph-retired', graph: back, at: 3_000 })
          }
        } else if (graph === undefined) continue
        else if (each.kind === 'end') end(graph)
        else if (each.kind === 'delete' && graph.tasks.has(each.id)) {
          const task = store.taskIn(store.graph(graph.id)!, each.id)!
          store.apply({ kind: 'deleted', task, at: 3_000 })
          model.remove(graph, each.id)
        } else if (
          each.kind === 'retire' &&
          graph.tasks.size > 0 &&
          [...graph.tasks.values()].every(({ hasEnded }) => hasEnded)
        ) {
          const known = store.graph(graph.id)!
          if (known.endedAt === undefined) continue
          store.apply({ kind: 'graph-retired', graph: known, at: 3_000 })
          for (const id of POOL) model.remove(graph, id)
          graph.isRetired = true
        }
        expectAgreement(model, service.store)
      }
      await service.end('snapshot')
    }),
    { numRuns: 200 },
  )
}, 180_000)

describe('the key of a task that only its graph knows', () => {
  const keysOf = async (store: TaskStore) => {
    using dir = tempDir()
    await writeSnapshot(store, dir.path)
    const entries = JSON.parse(readFileSync(join(dir.path, 'state.json'), 'utf8')) as Record<string, { id: string }>
    const { graphs } = await recover(dir.path)
    expect(graphs.flatMap(({ tasks }) => tasks.map(({ id }) => id))).toEqual(Object.values(entries).map(({ id }) => id))
    return Object.keys(entries)
  }

  test('has the id of the graph before it', async () => {
    const store = new TaskStore()
    const scoped = acceptScoped(store, [
      { id: 'a', type: 'test' },
      { id: 'b/c', type: 'test' },
    ])
    const old = acceptGraph(store, [{ id: 'a', type: 'test' }])
    store.apply({ kind: 'ended', task: old.tasks[0]!, at: 1, ending: { status: 'skipped', error: 'e' } })
    acceptGraph(store, [{ id: 'a', type: 'test' }])
    expect(await keysOf(store)).toEqual([`${scoped.id}/a`, `${scoped.id}/b/c`, `${old.id}/a`, 'a'])
  })

  test('has a suffix where an id of the service looks the same', async () => {
    const store = new TaskStore()
    const scoped = acceptScoped(store, [
      { id: 'a', type: 'test' },
      { id: 'a+0', type: 'test' },
    ])
    const ids = [`${scoped.id}/a`, `${scoped.id}/a+0`]
    acceptGraph(
      store,
      ids.map((id) => ({ id, type: 'test' })),
    )
    expect(await keysOf(store)).toEqual([`${scoped.id}/a+0+0`, `${scoped.id}/a+0+1`, ...ids])
  })
})
