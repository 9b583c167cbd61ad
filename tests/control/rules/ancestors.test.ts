/**
 * Goal: a reference is sound exactly if the task that it names is an ancestor of the task that has it.
 * Method: random graphs against a plain search, tables of the texts, and shapes of 100,000 tasks.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { checkReferences, type TaskReference } from '../../../control/rules/ancestors.ts'
import { dependenciesStartOf, edgesInSteps } from '../../../control/rules/edges.ts'
import { refuse } from '../../../control/rules/report.ts'
import { runCooperatively, runSync } from '../../../shared/process/steps.ts'
import { randomGraph } from '../../support/random-graph.ts'

interface TestTask {
  readonly id: string
  readonly depends_on: readonly string[]
}

function edgesOf(tasks: readonly TestTask[]) {
  const positions = new Map(tasks.map(({ id }, position) => [id, position]))
  return runSync(edgesInSteps(tasks, dependenciesStartOf(tasks), (id) => positions.get(id)!))
}

interface Fault {
  readonly message: string
  readonly id?: string | undefined
}

function faultsOf(tasks: readonly TestTask[], references: readonly TaskReference[], maxFollowed?: number): Fault[] {
  const faults: Fault[] = []
  const report = (message: string, id?: string) => void faults.push({ message, ...(id !== undefined && { id }) })
  runSync(
    checkReferences(
      { tasks, edges: edgesOf(tasks) },
      references,
      report,
      maxFollowed === undefined ? {} : { maxFollowed },
    ),
  )
  return faults
}

function ancestorsOf(tasks: readonly TestTask[], id: string): Set<string> {
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const found = new Set<string>()
  const open = [...byId.get(id)!.depends_on]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue
    found.add(next)
    open.push(...byId.get(next)!.depends_on)
  }
  return found
}

const LARGE = 100_000

const row = (length: number): TestTask[] =>
  Array.from({ length }, (_, i) => ({ id: `t${i}`, depends_on: i === 0 ? [] : [`t${i - 1}`] }))

describe('references', () => {
  const diamond: TestTask[] = [
    { id: 'd', depends_on: ['b', 'c'] },
    { id: 'a', depends_on: [] },
    { id: 'b', depends_on: ['a'] },
    { id: 'c', depends_on: ['a', 'a'] },
  ]

  test.each<[string, number, string, string | undefined]>([
    ['a direct dependency', 0, 'b', undefined],
    ['an ancestor further up', 0, 'a', undefined],
    ['a task of another branch', 2, 'c', 'task b references c but does not depend on it'],
    ['a task that comes later', 1, 'd', 'task a references d but does not depend on it'],
    ['the task itself', 2, 'b', 'task b references b but does not depend on it'],
    ['no task', 3, 'e', 'task c references unknown task e'],
  ])('to %s', (_, position, id, message) => {
    expect(faultsOf(diamond, [{ position, id }])).toEqual(
      message === undefined ? [] : [{ message, id: diamond[position]!.id }],
    )
  })

  test('have their faults in the order of the references', () => {
    const references = [
      { position: 1, id: 'x' },
      { position: 2, id: 'c' },
      { position: 2, id: 'a' },
      { position: 3, id: 'd' },
    ]
    expect(faultsOf(diamond, references).map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  })

  test('of random graphs are sound exactly if a search finds the ancestor', () => {
    fc.assert(
      fc.property(
        randomGraph({ maxTasks: 80 }),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 200 }),
        (tasks, pairs) => {
          if (tasks.length === 0) return
          const references = pairs
            .map(([by, to]) => ({ position: by % tasks.length, id: tasks[to % tasks.length]!.id }))
            .toSorted((a, b) => a.position - b.position)
          const wrong = references.filter(({ position, id }) => !ancestorsOf(tasks, tasks[position]!.id).has(id))
          expect(faultsOf(tasks, references).map(({ message }) => message)).toEqual(
            wrong.map(({ position, id }) => `task ${tasks[position]!.id} references ${id} but does not depend on it`),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  test.each<[string, (i: number) => number]>([
    ['each to the first', () => 0],
    ['each to the last but one', (i) => Math.max(0, i - 2)],
    ['each to one far before it', (i) => Math.max(0, i - 1_000)],
  ])('of 100,000 tasks in a row: %s', async (_, named) => {
    const tasks = row(LARGE)
    const references = tasks.flatMap((_, position) => (position === 0 ? [] : [{ position, id: `t${named(position)}` }]))
    await runCooperatively(checkReferences({ tasks, edges: edgesOf(tasks) }, references, refuse))
  })

  test('of one task to 100,000 in a row before it, and to one that is not', () => {
    const tasks = [...row(LARGE), { id: 'last', depends_on: [`t${LARGE - 2}`] }]
    const references = row(LARGE).map(({ id }) => ({ position: LARGE, id }))
    expect(faultsOf(tasks, references)).toEqual([
      { message: `task last references t${LARGE - 1} but does not depend on it`, id: 'last' },
    ])
  })

  test('of a graph whose edges are not sound are only looked up', () => {
    const faults: string[] = []
    const references = ['a', 'x'].map((id) => ({ position: 1, id }))
    runSync(checkReferences({ tasks: diamond, edges: undefined }, references, (message) => void faults.push(message)))
    expect(faults).toEqual(['task a references unknown task x'])
  })

  test('beyond the work that checking them may take are a fault of the graph', () => {
    const tasks = row(1_000)
    const references = tasks.slice(2).map((_, i) => ({ position: i + 2, id: `t${i}` }))
    expect(faultsOf(tasks, references, 1_000_000)).toEqual([])
    expect(faultsOf(tasks, references, 100)).toEqual([
      {
        message:
          'the graph has too many references to tasks that are no direct dependencies: let tasks depend directly on those that they reference',
      },
    ])
  })
})
