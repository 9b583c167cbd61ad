/** Goal: a task changes only as the specification says. Method: every pair of states against the list of allowed ones. */
import { describe, expect, test } from 'bun:test'
import { mayFollow, skipReason } from '../../../control/rules/transitions.ts'
import { isTerminal, TASK_STATUSES } from '../../../shared/contract/task-status.ts'

const ALLOWED = [
  'pending to running',
  'pending to skipped',
  'pending to cancelled',
  'running to success',
  'running to failed',
  'running to cancelling',
  'running to pending',
  'cancelling to cancelled',
]

describe('a task', () => {
  const pairs = TASK_STATUSES.flatMap((from) => TASK_STATUSES.map((to) => [from, to] as const))

  test.each(pairs)('may go from %s to %s only where the specification has it', (from, to) => {
    expect(mayFollow(from, to)).toBe(ALLOWED.includes(`${from} to ${to}`))
  })

  test('never leaves a terminal state, and leaves every other one', () => {
    for (const from of TASK_STATUSES) {
      expect(TASK_STATUSES.some((to) => mayFollow(from, to))).toBe(!isTerminal(from))
    }
  })
})

test('the reason of a skip names the dependency and what became of it', () => {
  expect(skipReason('build', 'failed')).toBe('dependency build failed')
  expect(skipReason('a b', 'deleted')).toBe('dependency a b deleted')
})
