/**
 * Goal: replicas that share a database give places as one service does. Method: random submissions and ends, several of them
 * between two decisions, beside the groups of a service without a database. Each decision is made without most of the graphs that
 * wait, too.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  changedIn,
  isQueued,
  isRefused,
  isWhole,
  type Place,
  settled,
} from '../../../../control/log/postgres/place-rule.ts'
import type { Graph } from '../../../../control/task/graph.ts'
import { GraphGroups } from '../../../../control/task/graph-groups.ts'
import { graphOf } from '../../../support/graph.ts'

const submission = fc.record({
  kind: fc.constant('submit' as const),
  limit: fc.constantFrom(1, 2, 3),
  onFull: fc.constantFrom('wait' as const, 'wait' as const, 'cancel_oldest' as const, 'refuse' as const),
  isLast: fc.boolean(),
})
const end = fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) })
const steps = fc.array(fc.oneof({ weight: 3, arbitrary: submission }, { weight: 2, arbitrary: end }), { maxLength: 40 })

test('places are given as by one service', () => {
  let leftOut = 0
  fc.assert(
    fc.property(steps, (given) => {
      const groups = new GraphGroups()
      const cancelled = new Set<string>()
      groups.onCancel = ({ id }) => cancelled.add(id)
      const graphs = new Map<number, Graph>()
      let places: readonly Place[] = []
      const settle = () => {
        for (const count of [1, 2, 4]) {
          const kept = new Set(places.filter(isQueued).slice(0, count))
          const few = places.filter((place) => !isQueued(place) || kept.has(place))
          if (!isWhole(few, settled(few), count)) continue
          if (few.length < places.length) leftOut++
          expect(changedIn(few, settled(few))).toEqual(changedIn(places, settled(places)))
        }
        const refused = new Set(places.filter(isRefused))
        places = settled(places)
        expect(settled(places)).toEqual(places)
        for (const place of places) {
          const graph = graphs.get(place.graph)
          expect(isRefused(place)).toBe(graph === undefined)
          if (graph === undefined) continue
          expect([place.isHeld, place.cancelledBy !== undefined]).toEqual([
            graph.waitsFor === undefined,
            cancelled.has(graph.id),
          ])
          if (place.cancelledBy !== undefined) expect(groups.whyCancelled(graph)).toContain(place.cancelledBy)
        }
        // The turn after a refusal removes the graph, some time later.
        places = places.filter((place) => !refused.has(place) && !(isRefused(place) && place.graph % 2 === 0))
      }
      for (const step of given) {
        if (step.kind === 'submit') {
          const { limit, onFull } = step
          const concurrency = { group: 'g', limit, on_full: onFull }
          const graph = graphOf([{ id: 'a', type: 'test' }], undefined, undefined, { concurrency })
          const { ordinal, id: graphId } = graph
          const place = { graph: ordinal, graphId, limit, onFull, isHeld: false, isNew: true, cancelledBy: undefined }
          places = [...places, place]
          if (groups.whyRefused(graph.options) === undefined) {
            groups.claim(graph)
            groups.keep(graph)
            groups.accepted(graph)
            graphs.set(ordinal, graph)
          }
          if (step.isLast) settle()
        } else {
          settle()
          const graph = [...graphs.values()][step.which % Math.max(1, graphs.size)]
          if (graph === undefined) continue
          groups.release(graph)
          graphs.delete(graph.ordinal)
          places = places.filter((place) => place.graph !== graph.ordinal)
          settle()
        }
      }
      settle()
    }),
    { numRuns: 1_000 },
  )
  expect(leftOut).toBeGreaterThan(0)
})
