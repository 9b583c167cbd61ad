/** Goal: the options of a task are those that were submitted, in the order of the record. Method: tables. */
import { expect, test } from 'bun:test'
import { childOptions, taskOptions } from '../../../control/task/task-options.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'

const given: TaskInput = {
  annotations: { a: 'b' },
  queue_timeout: 2 ** 63,
  timeout: 0,
  priority: -1,
  not_before: 5,
  cache: { key: 'k', ttl_ms: null },
  backoff: { initial_ms: 1 },
  retry: 2,
  for_each: [1],
  max_parallel: 1,
  run_if: 'always',
  when: null,
}

test('null is absent, and numbers are those that 64 bits hold', () => {
  expect(Object.entries(taskOptions({ id: 'a', type: 'os', ...given }))).toEqual([
    ['run_if', 'always'],
    ['for_each', [1]],
    ['max_parallel', 1],
    ['retry', 2],
    ['backoff', { initial_ms: 1 }],
    ['cache', { key: 'k' }],
    ['timeout', 0],
    ['queue_timeout', 2 ** 63 - 1024],
    ['priority', -1],
    ['not_before', 5],
    ['annotations', { a: 'b' }],
  ])
})

test('tasks without any share one object', () => {
  const plain = taskOptions({ id: 'a', type: 'os', params: 1, timeout: null, retry: 0 })
  expect(plain).toEqual({ retry: 0 })
  expect(taskOptions({ id: 'b', type: 'os' })).toBe(plain)
})

test('children have neither the rules nor the list of their parent', () => {
  expect(Object.keys(childOptions(taskOptions(given)))).toEqual([
    ...['retry', 'backoff', 'cache', 'timeout', 'queue_timeout', 'priority', 'annotations'],
  ])
})
