/** Times are written as `Date` writes them, in whatever order they come. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isoTime, MAX_TIME_MS } from '../../../shared/text/iso-time.ts'

test('a time is written as Date writes it, after any other', () => {
  const base = fc.integer({ min: 0, max: MAX_TIME_MS - 5_000 })
  const steps = fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 20 })
  fc.assert(
    fc.property(base, steps, (start, later) => {
      for (const ms of [start, ...later.map((step) => start + step), start]) {
        expect(isoTime(ms)).toBe(new Date(ms).toISOString())
      }
    }),
    { numRuns: 1_000 },
  )
  for (const ms of [0, 999, 1_000, MAX_TIME_MS]) expect(isoTime(ms)).toBe(new Date(ms).toISOString())
})
