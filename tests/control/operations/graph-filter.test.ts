/**
 * Goal: pages of graphs hold every wanted graph once, the newest first, and a look at 100,000 graphs holds nobody up.
 * Method: random stores compared with a plain sort; pauses are counted instead of times.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type GraphFilter, graphCursor, graphPage, graphPlaceOf } from '../../../control/operations/graph-filter.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { GRAPH_STATES } from '../../../shared/contract/graph-state.ts'
import { runSync, STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { acceptGraph, graphOf } from '../../support/graph.ts'

let tasks = 0

type Kind = (typeof GRAPH_STATES)[number]
const END = { success: 'success', failed: 'failed', cancelled: 'skipped', running: undefined } as const

/** A graph of one task that is in this state. */
function graphIn(store: TaskStore, state: Kind, createdAt: number): Graph {
  const graph = acceptGraph(store, [{ id: `t${++tasks}`, type: 'test' }], createdAt)
  const status = END[state]
  if (status === undefined) return graph
  graph.tasks[0]!.status = status
  graph.endedAt = createdAt
  return graph
}

function allPages(store: TaskStore, filter: GraphFilter, limit: number): Graph[][] {
  const pages: Graph[][] = []
  let cursor: string | undefined
  do {
    const after = cursor === undefined ? undefined : graphPlaceOf(cursor)!
    const page = runSync(graphPage(store, { filter, after, limit }))
    pages.push([...page.graphs])
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

describe('pages of graphs', () => {
  test('hold every wanted graph once, the newest first', () => {
    const graph = fc.record({ state: fc.constantFrom(...GRAPH_STATES), at: fc.nat(40) })
    const bound = fc.option(fc.nat(40), { nil: undefined })
    const filter = fc.record({ states: fc.uniqueArray(fc.constantFrom(...GRAPH_STATES)), since: bound, until: bound })
    fc.assert(
      fc.property(
        fc.array(graph, { maxLength: 60 }),
        filter,
        fc.integer({ min: 1, max: 9 }),
        (given, filter, limit) => {
          const store = new TaskStore()
          const all = given.map(({ state, at }) => ({ state, graph: graphIn(store, state, at) }))
          const wanted = all
            .filter(({ state }) => filter.states.length === 0 || filter.states.includes(state))
            .map(({ graph }) => graph)
            .filter(({ createdAt }) => createdAt >= (filter.since ?? 0) && createdAt < (filter.until ?? 99))
            .sort((a, b) => b.createdAt - a.createdAt || b.ordinal - a.ordinal)
          const pages = allPages(store, filter, limit)
          expect(pages.flat().map(({ id }) => id)).toEqual(wanted.map(({ id }) => id))
          expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('go on where they were when graphs come and go', () => {
    const store = new TaskStore()
    const graphs = [1, 2, 3, 4].map((at) => graphIn(store, 'success', at))
    const first = runSync(graphPage(store, { filter: {}, after: undefined, limit: 2 }))
    expect(first.graphs).toEqual([graphs[3]!, graphs[2]!])
    graphs[2]!.live = 0
    store.apply({ kind: 'graph-retired', graph: graphs[2]!, at: 5 })
    graphIn(store, 'success', 6)
    const second = runSync(graphPage(store, { filter: {}, after: graphPlaceOf(first.nextCursor!)!, limit: 2 }))
    expect(second).toEqual({ graphs: [graphs[1]!, graphs[0]!], nextCursor: undefined })
  })

  test('of a tenant are those of its tokens', () => {
    const store = new TaskStore()
    const of = (tenant?: string) => {
      const graph = graphOf([{ id: 'a', type: 'test' }], 1, undefined, undefined, tenant)
      store.apply({ kind: 'graph-accepted', graph })
      return graph
    }
    const [, ours] = [of(), of('acme'), of('globex')]
    expect(allPages(store, { tenant: 'acme' }, 9)).toEqual([[ours]])
    expect(allPages(store, {}, 9)[0]!.length).toBe(3)
  })

  test.each(['', '1', '-1-1', '1-1-1', 'a-b', '1-1 ', '9999999999999999-1'])('have no cursor %p', (text) => {
    expect(graphPlaceOf(text)).toBeUndefined()
  })

  test('have cursors that name a place', () => {
    const graph = graphIn(new TaskStore(), 'success', 7)
    expect(graphPlaceOf(graphCursor(graph))).toEqual({ createdAt: 7, ordinal: graph.ordinal })
  })

  test('are looked for with a pause after every few hundred graphs, or tasks of a graph', () => {
    const store = new TaskStore()
    const count = 20 * STEPS_PER_YIELD
    for (let i = 0; i < count; i++) graphIn(store, 'failed', i)
    const large = acceptGraph(
      store,
      Array.from({ length: count }, (_, i) => ({ id: `large${i}`, type: 'test' })),
    )
    large.endedAt = 1
    const steps = graphPage(store, { filter: { states: ['failed'] }, after: undefined, limit: 100 })
    let pauses = 0
    while (!steps.next().done) pauses++
    expect(pauses).toBeGreaterThanOrEqual(40)
  })
})
