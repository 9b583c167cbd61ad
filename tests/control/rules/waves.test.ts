/**
 * Goal: a task is in the first wave after those of its dependencies.
 * Method: random graphs, compared with the definition; a chain of 100,000 tasks.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { dependenciesStartOf, edgesAtOnce } from '../../../control/rules/edges.ts'
import { dependencyOrder } from '../../../control/rules/order.ts'
import { wavesOf } from '../../../control/rules/waves.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { type RandomTask, randomGraph } from '../../support/random-graph.ts'

function wavesIn(tasks: readonly RandomTask[], inside: (id: string) => string[][] | undefined = () => undefined) {
  const positions = new Map(tasks.map(({ id }, position) => [id, position]))
  const edges = edgesAtOnce(tasks, dependenciesStartOf(tasks), (id) => positions.get(id))!
  const idAt = (position: number) => tasks[position]!.id
  return runSync(wavesOf(edges, runSync(dependencyOrder(edges)), idAt, (position) => inside(idAt(position))))
}

test('waves are as the definition says, in the order of the graph', () => {
  fc.assert(
    fc.property(randomGraph({ maxTasks: 12 }), (tasks) => {
      const byId = new Map(tasks.map((task) => [task.id, task]))
      const waveOf = (id: string): number =>
        Math.max(0, ...byId.get(id)!.depends_on.map((dependency) => waveOf(dependency) + 1))
      const expected: string[][] = []
      for (const { id } of tasks) {
        const wave = waveOf(id)
        while (expected.length <= wave) expected.push([])
        expected[wave]!.push(id)
      }
      expect(wavesIn(tasks)).toEqual(expected)
    }),
    { numRuns: 300 },
  )
})

test('a chain has a wave for each task', () => {
  const chain = Array.from({ length: 100_000 }, (_, i) => ({
    ...{ id: `t${i}`, type: 'os' },
    depends_on: i === 0 ? [] : [`t${i - 1}`],
  }))
  expect(wavesIn(chain)).toEqual(chain.map(({ id }) => [id]))
})

test('what runs in place of a task has waves of its own, and what waits for the task comes after them', () => {
  const tasks: RandomTask[] = [
    { id: 'a', type: 'os', depends_on: [] },
    { id: 'each', type: 'group', depends_on: ['a'] },
    { id: 'b', type: 'os', depends_on: ['a'] },
    { id: 'end', type: 'os', depends_on: ['each', 'b'] },
  ]
  const inside = [['each/x', 'each/y'], ['each/z']]
  expect(wavesIn(tasks, (id) => (id === 'each' ? inside : undefined))).toEqual([
    ['a'],
    ['each/x', 'each/y', 'b'],
    ['each/z'],
    ['end'],
  ])
})
