/**
 * Goal: who depends on whom is told right, whichever way it is assembled.
 * Method: random acyclic graphs, and graphs on both sides of what is worked on at a time.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  dependenciesStartOf,
  dependencyCounts,
  edgesAtOnce,
  edgesInSteps,
  noEdges,
} from '../../../control/rules/edges.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { type RandomTask, randomGraph } from '../../support/random-graph.ts'

/** The dependencies of each task by position. */
type Dependencies = readonly (readonly number[])[]

function positionsOf(tasks: readonly RandomTask[]): Dependencies {
  const positions = new Map(tasks.map((task, position) => [task.id, position]))
  return tasks.map((task) => task.depends_on.map((id) => positions.get(id) ?? -1))
}

function expectEdges(dependencies: Dependencies): void {
  const tasks = dependencies.map((those) => ({ depends_on: those.map(String) }))
  const edges = runSync(edgesInSteps(tasks, dependenciesStartOf(tasks), Number))
  expect(edgesAtOnce(tasks, dependenciesStartOf(tasks), Number)).toEqual(edges)
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

  test('are not made where a dependency has no position', () => {
    const tasks = [{}, { depends_on: ['0', 'nobody'] }]
    expect(edgesAtOnce(tasks, dependenciesStartOf(tasks), (id) => (id === '0' ? 0 : undefined))).toBeUndefined()
  })

  test('of tasks without dependencies are none', () => {
    const tasks = [{}, { depends_on: null }, { depends_on: [] }]
    const start = dependenciesStartOf(tasks)
    expect(runSync(edgesInSteps(tasks, start, Number))).toEqual(noEdges(start))
  })
})
