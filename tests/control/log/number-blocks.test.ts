/** Blocks of numbers: where each begins, and which one a number is in. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  BLOCK,
  blockOf,
  isHalfUsed,
  LARGE_BLOCKS,
  MAX_BLOCK,
  SMALL_BLOCK,
  startOf,
} from '../../../control/log/number-blocks.ts'

test('each number is in one block, and blocks follow one another without a gap', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.integer({ min: 0, max: MAX_BLOCK }), fc.constantFrom(LARGE_BLOCKS - 1, LARGE_BLOCKS)),
      (block) => {
        const [start, end] = [startOf(block), startOf(block + 1)]
        expect([blockOf(start), blockOf(end - 1), blockOf(end)]).toEqual([block, block, block + 1])
        expect(Number.isSafeInteger(end)).toBe(true)
        expect([isHalfUsed(start), isHalfUsed(end - 1)]).toEqual([false, true])
      },
    ),
  )
})

test('blocks of earlier versions stay where they were', () => {
  expect([startOf(7), startOf(99_999)]).toEqual([7 * BLOCK, 99_999 * BLOCK])
})

test('there are enough of them for a start in each second of a lifetime, and none is as high as a number of a change', () => {
  expect(MAX_BLOCK).toBeGreaterThan(100 * 366 * 86_400)
  expect(MAX_BLOCK).toBeLessThan(BLOCK)
  expect(startOf(LARGE_BLOCKS + 1) - startOf(LARGE_BLOCKS)).toBe(SMALL_BLOCK)
})
