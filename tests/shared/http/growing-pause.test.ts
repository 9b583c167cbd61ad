/** Goal: pauses double up to the limit, and begin again after a reset. */
import { expect, test } from 'bun:test'
import { GrowingPause } from '../../../shared/http/growing-pause.ts'

test('pauses double up to the limit', () => {
  const pause = new GrowingPause({ firstMs: 100, longestMs: 350 })
  expect([1, 2, 3, 4].map(() => pause.next())).toEqual([100, 200, 350, 350])
  pause.reset()
  expect([pause.next(), pause.next()]).toEqual([100, 200])
})
