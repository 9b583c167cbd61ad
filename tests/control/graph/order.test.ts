/**
 * Goal: a cycle is found where there is one and nowhere else, and who depends on whom is told right.
 * Method: random acyclic graphs, the same with an edge that closes a circle, and graphs of 100,000 tasks.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildEdges, dependencyCounts, findCycle } from '../../../control/graph/order.ts'
import { runSync } from '../../../shared/steps.ts'
import { type RandomTask, randomCyclicGraph, randomGraph } from '../../support/random-graph.ts'

const LARGE = 100_000

/** The dependencies of each task by position. */
type Dependencies = readonly (readonly number[])[]

function positionsOf(tasks: readonly RandomTask[]): Dependencies {
  const positions = new Map(tasks.map((task, position) => [task.id, position]))
  return tasks.map((task) => task.depends_on.map((id) => positions.get(id) ?? -1))
}

function edgesOf(dependencies: Dependencies) {
  const starts = new Uint32Array(dependencies.length + 1)
  dependencies.forEach((those, task) => {
    starts[task + 1] = starts[task]! + those.length
  })
  return runSync(buildEdges(starts, Uint32Array.from(dependencies.flat())))
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

function expectEdges(dependencies: Dependencies): void {
  const edges = edgesOf(dependencies)
  expect([...dependencyCounts(edges)]).toEqual(dependencies.map((those) => those.length))
  const dependents: number[][] = dependencies.map(() => [])
  for (const [task, those] of dependencies.entries()) for (const dependency of those) dependents[dependency]!.push(task)
  for (const [position, those] of dependencies.entries()) {
    const { dependenciesStart, dependentsStart } = edges
    const on = edges.dependencies.subarray(dependenciesStart[position], dependenciesStart[position + 1])
    expect([...on]).toEqual([...those])
    const by = edges.dependents.subarray(dependentsStart[position], dependentsStart[position + 1])
    expect([...by]).toEqual(dependents[position]!)
  }
}

describe('the edges', () => {
  test('name the dependencies of each task and its dependents, once for each time that it is named', () => {
    fc.assert(fc.property(randomGraph({ maxTasks: 30 }), (tasks) => expectEdges(positionsOf(tasks))))
  })

  test('are the same whatever part of them is worked on at a time', () => {
    for (const [tasks, most] of [
      [255, 1],
      [256, 1],
      [257, 2],
      [1_000, 7],
      [300, 299],
    ] as const) {
      expectEdges(Array.from({ length: tasks }, (_, i) => Array.from({ length: Math.min(i, most) }, (_, d) => d)))
    }
  })
})
