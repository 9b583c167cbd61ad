/** Goal: the waits before attempts are those of the specification. Method: a table, and a rule for all the rest. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { backoffMs } from '../../../control/graph/backoff.ts'

describe('the wait before attempt', () => {
  test.each([
    [1, 0],
    [2, 100],
    [3, 200],
    [4, 400],
    [5, 800],
    [6, 1_600],
    [7, 3_200],
    [8, 6_400],
    [9, 10_000],
    [10, 10_000],
    [1_000_000, 10_000],
    [Number.MAX_SAFE_INTEGER, 10_000],
  ])('%d is %d milliseconds', (attempt, ms) => {
    expect(backoffMs(attempt)).toBe(ms)
  })

  test('n doubles with n and never exceeds ten seconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 5_000 }), (n) => {
        expect(backoffMs(n + 1)).toBe(Math.min(backoffMs(n) * 2, 10_000))
      }),
    )
  })
})
