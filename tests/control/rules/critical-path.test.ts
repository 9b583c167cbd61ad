/**
 * Goal: the critical path is the chain of dependent tasks that took the longest.
 * Method: random graphs with random durations, compared with a search over all paths; a table; 100,000 tasks.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { criticalPath } from '../../../control/rules/critical-path.ts'
import { dependenciesStartOf, edgesInSteps } from '../../../control/rules/edges.ts'
import { dependencyOrder } from '../../../control/rules/order.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { randomGraph } from '../../support/random-graph.ts'

type Dependencies = readonly (readonly number[])[]
type Durations = readonly (number | undefined)[]

function pathIn(dependencies: Dependencies, durations: Durations) {
  const tasks = dependencies.map((those) => ({ depends_on: those.map(String) }))
  const edges = runSync(edgesInSteps(tasks, dependenciesStartOf(tasks), Number))
  return runSync(criticalPath(edges, runSync(dependencyOrder(edges)), (task) => durations[task]))
}

/** By looking at every path. */
function longestOf(dependencies: Dependencies, durations: Durations): number {
  const endingAt = (task: number): number => {
    const duration = durations[task]
    if (duration === undefined) return 0
    return duration + Math.max(0, ...dependencies[task]!.map(endingAt))
  }
  return Math.max(0, ...dependencies.map((_, task) => endingAt(task)))
}

describe('the critical path', () => {
  test('is the longest of all paths', () => {
    const durations = fc.array(fc.option(fc.nat({ max: 50 }), { nil: undefined }), { minLength: 12, maxLength: 12 })
    fc.assert(
      fc.property(randomGraph({ maxTasks: 12 }), durations, (tasks, durations) => {
        const positions = new Map(tasks.map(({ id }, position) => [id, position]))
        const dependencies = tasks.map(({ depends_on }) => depends_on.map((id) => positions.get(id)!))
        const path = pathIn(dependencies, durations)
        expect(path.durationMs).toBe(longestOf(dependencies, durations))
        expect(path.positions.reduce((sum, task) => sum + durations[task]!, 0)).toBe(path.durationMs)
        path.positions.slice(1).forEach((task, i) => {
          expect(dependencies[task]).toContain(path.positions[i]!)
        })
      }),
      { numRuns: 300 },
    )
  })

  test.each<[string, Dependencies, Durations, number[], number]>([
    ['no task', [], [], [], 0],
    ['a task that has not started', [[]], [undefined], [], 0],
    ['a task that took no time', [[]], [0], [0], 0],
    ['the slower of two branches', [[], [0], [0], [1, 2]], [1, 5, 9, 1], [0, 2, 3], 11],
    ['a branch that goes on over one that waits', [[], [0], [0], [1, 2]], [1, 5, 9, undefined], [0, 2], 10],
    ['tasks that stand before their dependencies', [[2], [], [1]], [1, 2, 3], [1, 2, 0], 6],
    ['a task that stands alone', [[], [0], []], [1, 1, 7], [2], 7],
  ])('of %s', (_, dependencies, durations, positions, durationMs) => {
    expect(pathIn(dependencies, durations)).toEqual({ positions, durationMs })
  })

  test('of 100,000 tasks in a row', () => {
    const count = 100_000
    const row = Array.from({ length: count }, (_, i) => (i === 0 ? [] : [i - 1]))
    const path = pathIn(row, Array(count).fill(2))
    expect(path.durationMs).toBe(2 * count)
    expect(path.positions).toHaveLength(count)
  })
})
