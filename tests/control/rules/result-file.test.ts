/** When a result is large: the estimate never calls a small one large, and looks no further than it has to. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isLargeJson, RESULT_FILE_NAME, ResultFile } from '../../../control/rules/result-file.ts'

test('the limit is about where JSON.stringify says it is', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.integer({ min: 1, max: 400 }), (value, limit) => {
      const { length } = JSON.stringify(value)
      if (length >= 8 * limit) expect(isLargeJson(value, limit)).toBe(true)
      if (8 * length < limit) expect(isLargeJson(value, limit)).toBe(false)
    }),
  )
})

test('a large array is not walked', () => {
  const walked: unknown[] = new Array(1_000_000).fill(null)
  Object.defineProperty(walked, 999_999, { get: () => expect.unreachable('walked to the end') })
  expect(isLargeJson(walked)).toBe(true)
})

test('deep values are no recursion', () => {
  let deep: unknown = 'x'
  for (let i = 0; i < 5_000; i++) deep = [deep]
  expect(isLargeJson(deep, 1_000_000)).toBe(false)
})

test('names of files are numbers and a checksum, and tell the bytes', () => {
  expect(
    ['1-0-1.json', '12-345-6.json', '1-0-1-0123abcd.json', '1-0-1-0123abcd-70000.json'].map((name) =>
      RESULT_FILE_NAME.test(name) ? new ResultFile(name).bytes : undefined,
    ),
  ).toEqual([0, 0, 0, 70_000])
  expect(
    ['../1-0-1.json', '1-0-1.json/x', '1-0.json', '1-0-1.json\n', '1-0-1-123.json', '1-0-1-0123abcd-.json'].some(
      (name) => RESULT_FILE_NAME.test(name),
    ),
  ).toBe(false)
})
