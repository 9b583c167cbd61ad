/**
 * Goal: a rerun executes what did not succeed, what it was told to, and everything downstream; nothing else.
 * Method: random graphs with random outcomes, compared with the definition; a chain of 100,000 tasks.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { dependenciesStartOf, edgesAtOnce } from '../../../control/rules/edges.ts'
import { tasksToRun } from '../../../control/task/rerun.ts'
import type { TaskStatus } from '../../../shared/contract/task-status.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { type RandomTask, randomGraph } from '../../support/random-graph.ts'

function running(tasks: readonly (RandomTask & { status: TaskStatus })[], from: readonly string[]): string[] {
  const positions = new Map(tasks.map(({ id }, position) => [id, position]))
  const edges = edgesAtOnce(tasks, dependenciesStartOf(tasks), (id) => positions.get(id))!
  const runs = runSync(tasksToRun(tasks, edges, new Set(from)))
  return tasks.filter((_, i) => runs[i] === 1).map(({ id }) => id)
}

test('the tasks that run are those of the definition', () => {
  const outcomes = fc.array(fc.constantFrom<TaskStatus>('success', 'success', 'failed', 'skipped', 'cancelled'), {
    minLength: 12,
    maxLength: 12,
  })
  fc.assert(
    fc.property(
      randomGraph({ maxTasks: 12 }),
      outcomes,
      fc.array(fc.nat(), { maxLength: 2 }),
      (graph, outcomes, picks) => {
        const tasks = graph.map((task, i) => ({ ...task, status: outcomes[i]! }))
        const from = picks.map((pick) => tasks[pick % tasks.length]!.id)
        const byId = new Map(tasks.map((task) => [task.id, task]))
        const runs = (id: string): boolean => {
          const { status, depends_on } = byId.get(id)!
          return status !== 'success' || from.includes(id) || depends_on.some(runs)
        }
        expect(running(tasks, from)).toEqual(tasks.map(({ id }) => id).filter(runs))
      },
    ),
    { numRuns: 300 },
  )
})

test('all of a chain runs behind its first task', () => {
  const chain = Array.from({ length: 100_000 }, (_, i) => ({
    ...{ id: `t${i}`, type: 'os', status: 'success' as const },
    depends_on: i === 0 ? [] : [`t${i - 1}`],
  }))
  expect(running(chain, ['t1'])).toHaveLength(99_999)
})
