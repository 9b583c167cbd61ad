/**
 * Goal: a cycle is found where there is one and nowhere else; without one, tasks come in an order that dependencies allow.
 * Method: random acyclic graphs, the same with an edge that closes a circle, and graphs of 100,000 tasks.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { dependenciesStartOf, edgesInSteps } from '../../../control/rules/edges.ts'
import { dependencyOrder, findCycle } from '../../../control/rules/order.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { type RandomTask, randomCyclicGraph, randomGraph } from '../../support/random-graph.ts'

const LARGE = 100_000

/** The dependencies of each task by position. */
type Dependencies = readonly (readonly number[])[]

function positionsOf(tasks: readonly RandomTask[]): Dependencies {
  const positions = new Map(tasks.map((task, position) => [task.id, position]))
  return tasks.map((task) => task.depends_on.map((id) => positions.get(id) ?? -1))
}

function edgesOf(dependencies: Dependencies) {
  const tasks = dependencies.map((those) => ({ depends_on: those.map(String) }))
  return runSync(edgesInSteps(tasks, dependenciesStartOf(tasks), Number))
}

const cycleIn = (dependencies: Dependencies) => runSync(findCycle(edgesOf(dependencies)))

function expectCycle(dependencies: Dependencies, cycle: readonly number[] | null): void {
  if (cycle === null) throw new Error('no cycle was found')
  expect(cycle.length).toBeGreaterThan(0)
  expect(new Set(cycle).size).toBe(cycle.length)
  cycle.forEach((task, i) => {
    expect(dependencies[task]).toContain(cycle[(i + 1) % cycle.length]!)
  })
}

const chain = (length: number) => Array.from({ length }, (_, i) => (i === 0 ? [] : [i - 1]))

describe('a cycle', () => {
  test('is not found in an acyclic graph', () => {
    fc.assert(
      fc.property(randomGraph({ maxTasks: 40 }), (tasks) => {
        expect(cycleIn(positionsOf(tasks))).toBeNull()
      }),
      { numRuns: 300 },
    )
  })

  test('is found in every graph that has one, and is one', () => {
    fc.assert(
      fc.property(randomCyclicGraph({ maxTasks: 40 }), (tasks) => {
        const dependencies = positionsOf(tasks)
        expectCycle(dependencies, cycleIn(dependencies))
      }),
      { numRuns: 300 },
    )
  })

  test.each<[string, Dependencies, number[]]>([
    ['a task that depends on itself', [[0]], [0]],
    ['two tasks that depend on each other', [[1], [0]], [0, 1]],
    ['three in a circle, each on the next', [[1], [2], [0]], [0, 1, 2]],
    ['a circle behind a task that only waits for it', [[1], [2], [1]], [1, 2]],
    ['a circle in front of a task that it waits for', [[], [0, 2], [1]], [1, 2]],
    [
      'a circle named twice',
      [
        [1, 1],
        [0, 0],
      ],
      [0, 1],
    ],
  ])('is found in %s', (_, dependencies, cycle) => {
    expect(cycleIn(dependencies)?.toSorted()).toEqual(cycle)
    expectCycle(dependencies, cycleIn(dependencies))
  })

  test('is not found where there are no tasks or no dependencies', () => {
    expect(cycleIn([])).toBeNull()
    expect(cycleIn([[], [], []])).toBeNull()
  })

  test('is found or not among 100,000 tasks in a row', () => {
    const row = chain(LARGE)
    expect(cycleIn(row)).toBeNull()
    row[0] = [LARGE - 1]
    const cycle = cycleIn(row)
    expect(cycle).toHaveLength(LARGE)
    expect(cycle!.every((task, i) => row[task]![0] === cycle![(i + 1) % LARGE])).toBe(true)
  })

  test('is found or not among 100,000 tasks that wait for one and that one waits for', () => {
    const last = LARGE + 1
    const wide: number[][] = [
      [],
      ...Array.from({ length: LARGE }, () => [0]),
      Array.from({ length: LARGE }, (_, i) => i + 1),
    ]
    expect(cycleIn(wide)).toBeNull()
    wide[0] = [last]
    expectCycle(wide, cycleIn(wide))
  })
})

describe('the order of tasks', () => {
  const orderOf = (dependencies: Dependencies) => [...runSync(dependencyOrder(edgesOf(dependencies)))]

  test('has each task once, after all that it depends on', () => {
    fc.assert(
      fc.property(randomGraph({ maxTasks: 40 }), (tasks) => {
        const dependencies = positionsOf(tasks)
        const order = orderOf(dependencies)
        expect(order.toSorted((a, b) => a - b)).toEqual(tasks.map((_, position) => position))
        const place = new Map(order.map((task, i) => [task, i]))
        dependencies.forEach((those, task) => {
          for (const dependency of those) expect(place.get(dependency)!).toBeLessThan(place.get(task)!)
        })
      }),
      { numRuns: 300 },
    )
  })

  test.each<[string, Dependencies, number[]]>([
    ['of no tasks', [], []],
    ['that is valid stays', [[], [], [0], [1, 2]], [0, 1, 2, 3]],
    ['moves a task behind the dependency that it stands before', [[2], [], []], [2, 0, 1]],
    ['moves dependencies of dependencies', [[1, 2], [3], [], []], [3, 1, 2, 0]],
  ])('%s', (_, dependencies, order) => {
    expect(orderOf(dependencies)).toEqual(order)
  })

  test('of 100,000 tasks in a row, the last first', () => {
    const row = Array.from({ length: LARGE }, (_, i) => (i === LARGE - 1 ? [] : [i + 1]))
    expect(orderOf(row)).toEqual(Array.from({ length: LARGE }, (_, i) => LARGE - 1 - i))
  })
})
