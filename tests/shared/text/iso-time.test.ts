/** Times are written and read as `Date` does, in whatever order they come. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isoTime, MAX_TIME_MS, msOf } from '../../../shared/text/iso-time.ts'

test('a time is written as Date writes it, and read again, after any other', () => {
  const base = fc.integer({ min: 0, max: MAX_TIME_MS - 5_000 })
  const steps = fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 20 })
  fc.assert(
    fc.property(base, steps, (start, later) => {
      for (const ms of [start, ...later.map((step) => start + step), start]) {
        expect(isoTime(ms)).toBe(new Date(ms).toISOString())
        expect(msOf(isoTime(ms))).toBe(ms)
      }
    }),
    { numRuns: 1_000 },
  )
  for (const ms of [0, 999, 1_000, MAX_TIME_MS]) expect(isoTime(ms)).toBe(new Date(ms).toISOString())
})

test('a text that is no time has no milliseconds, and other forms of a time have theirs', () => {
  for (const text of [undefined, '', 'x', 'soon', '2026-01-02T03:04:99Z']) expect(msOf(text)).toBeUndefined()
  for (const text of ['1970-01-01T00:00:01Z', '1970-01-01T01:00:01.000+01:00', '1970-01-01T00:00:01.000Z'])
    expect(msOf(text)).toBe(1_000)
})
