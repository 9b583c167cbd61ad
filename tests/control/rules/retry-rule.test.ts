/** Goal: jitter spreads tasks that fail together, and the wait of a task is the same whoever asks. */
import { expect, test } from 'bun:test'
import { isRetriedFor, nextBackoffMs } from '../../../control/rules/retry-rule.ts'
import { graphOf } from '../../support/graph.ts'

const tasksWith = (backoff: object) =>
  graphOf(Array.from({ length: 100 }, (_, i) => ({ id: `t${i}`, type: 'test', backoff }))).tasks.map((task) => {
    task.attempt = 1
    return task
  })

test('tasks with jitter wait for different times within its limits, each always for the same one', () => {
  const tasks = tasksWith({ initial_ms: 10_000, jitter: 0.5 })
  const waits = tasks.map(nextBackoffMs)
  expect(new Set(waits).size).toBeGreaterThan(90)
  expect(waits.every((ms) => ms >= 5_000 && ms <= 10_000)).toBe(true)
  expect(tasks.map(nextBackoffMs)).toEqual(waits)
  expect(new Set(tasksWith({ initial_ms: 10_000 }).map(nextBackoffMs))).toEqual(new Set([10_000]))
})

test('a task of which nothing is said is retried for every code, others for theirs', () => {
  const [plain, some, none] = graphOf([
    { id: 'plain', type: 'test' },
    { id: 'some', type: 'test', retry_on: ['timeout', 'external_failure'] },
    { id: 'none', type: 'test', retry_on: [] },
  ]).tasks
  expect([plain, some, none].map((task) => isRetriedFor(task!, 'timeout'))).toEqual([true, true, false])
  expect([plain, some, none].map((task) => isRetriedFor(task!, 'exit_nonzero'))).toEqual([true, false, false])
})
