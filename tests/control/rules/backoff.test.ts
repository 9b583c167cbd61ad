/** Goal: the waits before attempts are those of the specification and of the task. Method: tables, and a rule for all the rest. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { backoffMs, MAX_UNDELAYED_ATTEMPTS, MIN_BACKOFF_MS } from '../../../control/rules/backoff.ts'
import type { Backoff } from '../../../shared/contract/submission.ts'

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

  test.each<[Backoff, number[]]>([
    [{}, [0, 100, 200, 400]],
    [{ initial_ms: 7 }, [0, 7, 14, 28]],
    [{ initial_ms: 10, factor: 1 }, [0, 10, 10, 10]],
    [{ initial_ms: 10, factor: 1.5 }, [0, 10, 15, 23]],
    [{ initial_ms: 10, factor: 10, max_ms: 500 }, [0, 10, 100, 500]],
    [{ max_ms: 50 }, [0, 50, 50, 50]],
    [{ initial_ms: 0 }, [0, 0, 0, 0]],
    [{ max_ms: 0 }, [0, 0, 0, 0]],
    [{ initial_ms: null, factor: null, max_ms: null, jitter: null }, [0, 100, 200, 400]],
  ])('1 to 4 with %j is %j', (backoff, waits) => {
    expect([1, 2, 3, 4].map((n) => backoffMs(n, backoff))).toEqual(waits)
  })

  test.each<Backoff>([{ initial_ms: 0 }, { max_ms: 0 }, { initial_ms: 1, factor: 1 }, { jitter: 1 }])(
    'is never too short after the tenth attempt with %j',
    (backoff) => {
      for (const n of [MAX_UNDELAYED_ATTEMPTS + 1, 100, Number.MAX_SAFE_INTEGER]) {
        expect(backoffMs(n, backoff, 1)).toBe(MIN_BACKOFF_MS)
      }
      expect(backoffMs(MAX_UNDELAYED_ATTEMPTS, backoff, 1)).toBeLessThan(MIN_BACKOFF_MS)
    },
  )

  test('far away is the longest one', () => {
    const far = Number.MAX_SAFE_INTEGER
    expect(backoffMs(far, { factor: 100, max_ms: 86_400_000 })).toBe(86_400_000)
  })

  test('is shorter by a part of the jitter', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 20 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (n, jitter, spread) => {
          const ms = backoffMs(n, { jitter }, spread)
          expect(ms).toBeLessThanOrEqual(backoffMs(n))
          expect(ms).toBeGreaterThanOrEqual(Math.floor(backoffMs(n) * (1 - jitter)))
        },
      ),
    )
    expect(backoffMs(3, { jitter: 1 }, 1)).toBe(0)
    expect(backoffMs(3, { jitter: 0.5 }, 0.5)).toBe(150)
  })

  test('n doubles with n and never exceeds ten seconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 5_000 }), (n) => {
        expect(backoffMs(n + 1)).toBe(Math.min(backoffMs(n) * 2, 10_000))
      }),
    )
  })
})
