/**
 * Goal: ended graphs go when they have been kept for long enough, or when room is needed, oldest first, whole; live ones never.
 * Method: a real store; the time is passed in.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ResultFile } from '../../../control/rules/result-file.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { Retention } from '../../../control/task/retention.ts'
import { storedBytes } from '../../../control/task/stored-bytes.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn, runSync } from '../../../shared/process/steps.ts'
import { acceptGraph, acceptScoped } from '../../support/graph.ts'
import { until } from '../../support/until.ts'

const HOUR_MS = 3_600_000

function world(options: { retentionMs?: number; maxStoredTasks?: number; maxStoredBytes?: number } = {}) {
  const store = new TaskStore()
  // The timer of a retention of hours does not come round within a test.
  const retention = new Retention({ store, retentionMs: HOUR_MS, maxStoredTasks: 1_000, log: silentLog(), ...options })
  const accept = (...ids: string[]) =>
    acceptGraph(
      store,
      ids.map((id) => ({ id, type: 'test' })),
    )
  return { store, retention, accept, [Symbol.dispose]: () => retention.stop() }
}

function end(store: TaskStore, graph: Graph, at: number, result: unknown = { ok: true }): void {
  for (const task of graph.tasks) {
    store.apply({ kind: 'attempt-started', task, at })
    store.apply({ kind: 'ended', task, at, ending: { status: 'success', result } })
  }
}

const ids = (store: TaskStore) => [...store.visibleTasks()].map(({ id }) => id)

describe('a sweep', () => {
  test('lets go of a graph that ended a retention ago, and of nothing else', () => {
    using w = world()
    const { store, retention, accept } = w
    const [first, second] = [accept('a', 'b'), accept('c')]
    accept('live')
    end(store, first, 1_000)
    end(store, second, 2_000)
    retention.sweep(1_000 + HOUR_MS - 1)
    expect(ids(store)).toEqual(['a', 'b', 'c', 'live'])
    retention.sweep(1_000 + HOUR_MS)
    expect(ids(store)).toEqual(['c', 'live'])
    expect(store.get('a')).toBeUndefined()
    retention.sweep(2_000 + 2 * HOUR_MS)
    expect(ids(store)).toEqual(['live'])
    expect(store.taskCount).toBe(1)
  })

  test('frees the ids and the memory', async () => {
    using w = world()
    const { store, retention, accept } = w
    const graph = accept(...Array.from({ length: 2_000 }, (_, i) => `t${i}`))
    end(store, graph, 1)
    retention.sweep(2 * HOUR_MS)
    accept('t0', 't1999') // taken over while the rest is still being freed
    await until(() => [...store.graphs].length, 1)
    expect(graph.tasks.every(({ result }) => result === undefined)).toBe(true)
    expect(ids(store)).toEqual(['t0', 't1999'])
    expect(store.taskCount).toBe(2)
  })
})

test('a retention of 0 keeps for ever', () => {
  using w = world({ retentionMs: 0 })
  const graph = w.accept('a')
  end(w.store, graph, 1)
  w.retention.makeRoom(1, Number.MAX_SAFE_INTEGER)
  expect(ids(w.store)).toEqual(['a'])
})

describe('bytes', () => {
  const KIB = 'x'.repeat(1_022)
  const file = new ResultFile('1-0-1-00000000-2048.json')

  test('beyond maxStoredBytes let the graphs go that ended first, and never one that lives or ended last', async () => {
    using w = world({ maxStoredBytes: 4_096 })
    const { store, accept } = w
    const [live, a, b, c, d] = [accept('live1', 'live2'), accept('a'), accept('b'), accept('c'), accept('d')]
    store.apply({ kind: 'attempt-started', task: live.tasks[0]!, at: 5 })
    store.apply({ kind: 'ended', task: live.tasks[0]!, at: 5, ending: { status: 'success', result: KIB } })
    end(store, b, 10, KIB)
    end(store, a, 20, file)
    await nextTurn()
    expect([ids(store), store.storedBytes]).toEqual([['live1', 'live2', 'a', 'b', 'c', 'd'], 4_096])
    end(store, c, 30, KIB)
    await nextTurn()
    expect([ids(store), store.storedBytes]).toEqual([['live1', 'live2', 'a', 'c', 'd'], 4_096])
    end(store, d, 40, new ResultFile('1-0-1-00000000-10000.json'))
    await nextTurn()
    expect([ids(store), store.storedBytes]).toEqual([['live1', 'live2', 'd'], 11_024])
  })

  test('are freed when records are deleted, and 0 is no limit', async () => {
    using w = world({ maxStoredBytes: 0 })
    const graph = w.accept('a', 'b')
    end(w.store, graph, 1, file)
    end(w.store, w.accept('c'), 2, file)
    await nextTurn()
    expect([ids(w.store), w.store.storedBytes]).toEqual([['a', 'b', 'c'], 6_144])
    w.store.apply({ kind: 'deleted', task: graph.tasks[0]!, at: 3 })
    expect([graph.storedBytes, w.store.storedBytes]).toEqual([2_048, 4_096])
    w.store.apply({ kind: 'graph-retired', graph, at: 4 })
    expect(w.store.storedBytes).toBe(2_048)
  })

  test('of an input count until the task has ended; an outcome that was taken over counts nothing', () => {
    using w = world()
    const [a, b] = w.accept('a', 'b').tasks
    for (const task of [a!, b!]) w.store.apply({ kind: 'attempt-started', task, at: 1 })
    w.store.apply({ kind: 'input-resolved', task: a!, at: 1, input: KIB, file })
    expect(w.store.storedBytes).toBe(1_024 + 2_048)
    w.store.apply({ kind: 'ended', task: a!, at: 2, ending: { status: 'success', result: KIB } })
    expect(w.store.storedBytes).toBe(2 * 1_024)
    const reusedFrom = { graph_id: 'g', task_id: 't' }
    w.store.apply({ kind: 'ended', task: b!, at: 2, ending: { status: 'success', result: file, reusedFrom } })
    expect(w.store.storedBytes).toBe(2 * 1_024)
  })
})

describe('room', () => {
  test('that cannot be made is refused, and nothing goes that need not', () => {
    using w = world({ maxStoredTasks: 3 })
    end(w.store, w.accept('ended'), 1)
    w.accept('a', 'b')
    expect(() => w.retention.makeRoom(2)).toThrow(
      'no room for 2 more tasks: graphs that have not ended hold 2 of at most 3 (--max-stored-tasks)',
    )
    expect(ids(w.store)).toEqual(['ended', 'a', 'b'])
    expect(() => w.retention.makeRoom(1)).not.toThrow()
    expect(ids(w.store)).toEqual(['a', 'b'])
  })

  test('does not count what was deleted', () => {
    using w = world({ maxStoredTasks: 2 })
    const graph = w.accept('a', 'b')
    w.store.apply({ kind: 'deleted', task: graph.tasks[0]!, at: 1 })
    expect(w.store.taskCount).toBe(1)
    expect(() => w.retention.makeRoom(1)).not.toThrow()
  })
})

describe('the number of tasks of ended graphs', () => {
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('accept' as const),
        ids: fc.uniqueArray(fc.nat(12), { minLength: 1, maxLength: 5 }),
        isScoped: fc.boolean(),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('start', 'end', 'delete'), id: fc.nat(12) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('room' as const), count: fc.integer({ min: 1, max: 8 }) }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'sweep' as const }) },
  )

  test('is that of a count over all graphs, whatever happens to them, and so are the bytes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        using w = world({ maxStoredTasks: 8, retentionMs: 10 })
        const { store, retention } = w
        const apply = (each: (typeof steps)[number], at: number) => {
          if (each.kind === 'accept') {
            const tasks = each.ids.map((id) => ({ id: `t${id}`, type: 'test' }))
            return void (each.isScoped ? acceptScoped : acceptGraph)(store, tasks)
          }
          if (each.kind === 'room') return retention.makeRoom(each.count, at)
          if (each.kind === 'sweep') return retention.sweep(at)
          const task = store.get(`t${(each as { id: number }).id}`)
          if (task === undefined) return
          if (each.kind === 'delete') store.apply({ kind: 'deleted', task, at })
          else if (each.kind === 'start' && task.status === 'pending')
            store.apply({ kind: 'attempt-started', task, at })
          else if (each.kind === 'end' && task.status === 'running')
            store.apply({ kind: 'ended', task, at, ending: { status: 'success', result: 'x'.repeat(at) } })
        }
        for (const [at, each] of steps.entries()) {
          try {
            apply(each, at)
          } catch (error) {
            expect([409, 503]).toContain((error as { status: number }).status)
          }
          const graphs = [...store.graphs].filter(({ isRetired }) => !isRetired)
          const count = (counted: readonly Graph[]) => counted.reduce((sum, { visible }) => sum + visible, 0)
          expect(store.taskCount).toBe(count(graphs))
          const bytes = graphs.flatMap(({ tasks }) => tasks.map(storedBytes)).reduce((sum, each) => sum + each, 0)
          expect(store.storedBytes).toBe(bytes)
          expect(store.endedTaskCount).toBe(count(graphs.filter(({ endedAt }) => endedAt !== undefined)))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('is counted once for each graph, not for each submission', () => {
    using w = world({ maxStoredTasks: 2_000 })
    for (let i = 0; i < 2_000; i++) end(w.store, w.accept(`t${i}`), i)
    let reads = 0
    for (const graph of w.store.graphs) {
      const { visible } = graph
      let value = visible
      Object.defineProperty(graph, 'visible', {
        get: () => {
          reads++
          return value
        },
        set: (next: number) => {
          value = next
        },
      })
    }
    w.retention.makeRoom(1)
    expect(reads).toBeLessThan(20)
    expect(w.store.taskCount).toBe(1_999)
  })
})

test('graphs that ended before the start are known, in the order of their ends', () => {
  const store = new TaskStore()
  const [first, second] = [
    acceptGraph(store, [{ id: 'a', type: 'test' }]),
    acceptGraph(store, [{ id: 'b', type: 'test' }]),
  ]
  end(store, first, 20)
  end(store, second, 10)
  const retention = new Retention({ store, retentionMs: 0, maxStoredTasks: 2, log: silentLog() })
  retention.makeRoom(1)
  expect(ids(store)).toEqual(['a'])
})

test('a graph that ended elsewhere and was adopted goes in the order of the ends', () => {
  using w = world()
  const { store, retention, accept } = w
  end(store, accept('late'), 20)
  const elsewhere = new TaskStore()
  const adopted = acceptGraph(elsewhere, [{ id: 'early', type: 'test' }])
  end(elsewhere, adopted, 10)
  runSync(store.recover(adopted))
  retention.sweep(HOUR_MS + 10)
  expect(ids(store)).toEqual(['late'])
})

describe('room for children', () => {
  test('is refused with the number of children, not as a graph that is too large', () => {
    using w = world({ maxStoredTasks: 3 })
    w.accept('live')
    expect(w.retention.roomFor(2)).toBeUndefined()
    const full = 'no room for 3 more tasks: graphs that have not ended hold 1 of at most 3 (--max-stored-tasks)'
    expect(w.retention.roomFor(3)).toBe(full)
    expect(w.retention.roomFor(4)).toBe('no room for 4 more tasks: at most 3 are kept (--max-stored-tasks)')
  })
})
