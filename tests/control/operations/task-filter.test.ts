/**
 * Goal: a page goes on behind its cursor whatever becomes of the store meanwhile, and a filter by graph looks at no other.
 * Method: a store of more graphs than are looked at without a pause; it changes at a pause.
 */
import { describe, expect, test } from 'bun:test'
import { graphsOf, type Page, type PageRequest, pageOf } from '../../../control/operations/task-filter.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { runSync, STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'

const COUNT = 2 * STEPS_PER_YIELD

function world() {
  const store = new TaskStore()
  const graphs = Array.from({ length: COUNT }, (_, i) => acceptGraph(store, [{ id: `task-${i}`, type: 'test' }]))
  const remove = ({ tasks }: Graph) => {
    for (const task of tasks) store.apply({ kind: 'deleted', task, at: Date.now() })
  }
  return { store, graphs, remove }
}

const after = ({ ordinal }: Graph): PageRequest => ({ filter: {}, after: { ordinal, position: 0 }, limit: COUNT })
const ids = ({ tasks }: Page) => tasks.map(({ id }) => id)
const expected = (from: number) => Array.from({ length: COUNT - from }, (_, i) => `task-${from + i}`)

describe('a page behind a cursor', () => {
  test.each([0, 1, STEPS_PER_YIELD, COUNT - 2, COUNT - 1])('in graph %i', (place) => {
    const { store, graphs } = world()
    expect(ids(runSync(pageOf(store, after(graphs[place]!))))).toEqual(expected(place + 1))
  })

  test('whose graph is gone holds what came after it', () => {
    const { store, graphs, remove } = world()
    const gone = graphs[STEPS_PER_YIELD + 10]!
    remove(gone)
    expect(ids(runSync(pageOf(store, after(gone))))).toEqual(expected(STEPS_PER_YIELD + 11))
  })

  test.each(Array.from({ length: 4 }, (_, i) => i + 1))('whose graph goes at pause %i', (pause) => {
    const { store, graphs, remove } = world()
    const place = COUNT - 10
    const page = pageOf(store, after(graphs[place]!))
    let isGone = false
    for (let pauses = 0; ; ) {
      const step = page.next()
      if (step.done) {
        expect(ids(step.value)).toEqual(expected(place + 1))
        break
      }
      if (++pauses === pause) {
        remove(graphs[place]!)
        isGone = true
      }
    }
    expect(isGone || pause > 1).toBe(true)
  })
})

test('a filter by graph chooses the graph before its tasks', () => {
  const { store, graphs } = world()
  const chosen = (graphId?: string) => [...graphsOf(store, { graphId })]
  expect(chosen(graphs[7]!.id)).toEqual([graphs[7]!])
  expect(chosen('none')).toEqual([])
  expect(chosen()).toEqual(graphs)
  const page = runSync(pageOf(store, { filter: { graphId: graphs[7]!.id }, after: undefined, limit: 5 }))
  expect({ ids: ids(page), next: page.nextCursor }).toEqual({ ids: ['task-7'], next: undefined })
})
