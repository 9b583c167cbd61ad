/** Goal: the slope of the soak tells a leak from the warm-up. Method: memory as in an hour that was measured, with leaks. */
import { describe, expect, test } from 'bun:test'
import { steadySlope } from './footprint.ts'

/** Samples of an hour, each 30 seconds. */
const MINUTES = Array.from({ length: 120 }, (_, i) => (i + 1) / 2)

/** Megabytes of a service: it warms up, and the collector takes back each ten minutes what has gathered. */
const warmUp = (minute: number) => 75 + 15 * (1 - Math.exp(-minute / 5))
const collected = (minute: number) => (minute % 10) * 0.9
const memory = (leakAnHour: number) =>
  MINUTES.map((minute) => warmUp(minute) + collected(minute) + (leakAnHour * minute) / 60)

describe('the slope of memory after the warm-up', () => {
  test('is nearly none without a leak', () => {
    expect(Math.abs(steadySlope(MINUTES, memory(0))!)).toBeLessThan(4)
  })

  test.each([20, 32, 64])('is that of a leak of %i MB an hour', (leak) => {
    expect(Math.abs(steadySlope(MINUTES, memory(leak))! - leak)).toBeLessThan(4)
  })

  test('is not told before it can be: the first eight minutes look like a leak', () => {
    const until = (minutes: number) => {
      const count = MINUTES.filter((minute) => minute <= minutes).length
      return steadySlope(MINUTES.slice(0, count), memory(0).slice(0, count))
    }
    expect([0, 8, 20, 30].map(until)).toEqual([undefined, undefined, undefined, undefined])
    expect(until(40)).toBeNumber()
  })
})
