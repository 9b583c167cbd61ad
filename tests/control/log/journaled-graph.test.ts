/** Goal: a graph that is read in steps is the one that is read at once, and no step takes long. */
import { expect, test } from 'bun:test'
import { decodeGraph, decodeGraphInSteps, encodeGraph } from '../../../control/log/journaled-graph.ts'
import { recoveredGraph } from '../../../control/log/postgres/recovered-graphs.ts'
import { runSync, STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { graphOf } from '../../support/graph.ts'

const COUNT = 20_000

/** The payload of a graph of many tasks, with all that a payload may have. */
function payloadOf(count: number): Uint8Array {
  const tasks = Array.from({ length: count }, (_, i) => ({
    ...{ id: `task ${i} "},{"`, type: 'noop', params: { text: 'é\\' } },
    ...(i > 0 && { depends_on: [`task ${i - 1} "},{"`] }),
  }))
  const idempotency = { scope: 'tasks', key: 'k', hash: 'h', answer: '{}', at: 5 }
  const body = new TextEncoder().encode(JSON.stringify({ name: 'large', tasks, params: { n: 1 } }))
  const reused = [
    `[[5,${JSON.stringify(tasks.map(({ id }) => id))},${JSON.stringify(tasks.map((_, i) => i))},"success"]]`,
  ]
  return Buffer.concat(
    encodeGraph(graphOf([{ id: 'a', type: 'noop' }]), body, { idempotency, reused }).map((part) => Buffer.from(part)),
  )
}

test.each([1, COUNT])('a graph of %i tasks', (count) => {
  const payload = payloadOf(count)
  expect(JSON.stringify(runSync(decodeGraphInSteps(payload)))).toBe(JSON.stringify(decodeGraph(payload)))
})

test('a large graph is built in as many steps as it has ranges of tasks', () => {
  const tasks = Array.from({ length: COUNT }, (_, i) => ({ id: `t${i}`, type: 'noop', depends_on: i ? ['t0'] : [] }))
  const head = { graph_ordinal: 5, graph_id: 'g', trace_id: '0'.repeat(32), created_at: new Date(0).toISOString() }
  const graph = JSON.stringify({ ...head, body: { tasks } })
  const building = recoveredGraph(
    { graph, frames: [], ownIds: new Set(tasks.map(({ id }) => id)) },
    (text) => new Error(text),
  )
  let steps = 0
  let step = building.next()
  for (; !step.done; step = building.next()) steps++
  expect(step.value.graph!.tasks).toHaveLength(COUNT)
  expect(step.value.graph!.live).toBe(COUNT)
  // Conditions, shapes, entries, dependencies, positions, edges, cycles, tasks and ids: each in ranges.
  expect(steps).toBeGreaterThan((9 * COUNT) / STEPS_PER_YIELD)
})
