/** Goal: the parts of a file that a Range header asks for are those of RFC 9110. Method: a table, and random ranges. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ByteRange, byteRangeOf } from '../../../runtime/http/byte-range.ts'

test.each([
  [null, 10, undefined],
  ['bytes=0-0', 10, { from: 0, to: 1 }],
  ['bytes=2-5', 10, { from: 2, to: 6 }],
  ['bytes=2-', 10, { from: 2, to: 10 }],
  ['bytes=2-99', 10, { from: 2, to: 10 }],
  ['bytes=-3', 10, { from: 7, to: 10 }],
  ['bytes=-99', 10, { from: 0, to: 10 }],
  ['Bytes = 1 - 2', 10, { from: 1, to: 3 }],
  ['bytes=10-', 10, null],
  ['bytes=-0', 10, null],
  ['bytes=0-', 0, null],
  ['bytes=-1', 0, null],
  ['bytes=5-2', 10, undefined],
  ['bytes=-', 10, undefined],
  ['bytes=', 10, undefined],
  ['bytes=0-1,3-4', 10, undefined],
  ['lines=0-1', 10, undefined],
  ['bytes=a-b', 10, undefined],
  ...[16, 400].flatMap((digits): [string, number, ByteRange | null][] => [
    [`bytes=${'9'.repeat(digits)}-`, 10, null],
    [`bytes=2-${'9'.repeat(digits)}`, 10, { from: 2, to: 10 }],
    [`bytes=-${'9'.repeat(digits)}`, 10, { from: 0, to: 10 }],
  ]),
])('%j of %i bytes is %j', (header, size, range) => {
  expect(byteRangeOf(header, size)).toEqual(range as ReturnType<typeof byteRangeOf>)
})

test('a range that a file has lies in the file', () => {
  fc.assert(
    fc.property(fc.nat(100), fc.nat(100), fc.integer({ min: 1, max: 100 }), (first, last, size) => {
      const range = byteRangeOf(`bytes=${first}-${last}`, size)
      if (last < first) expect(range).toBeUndefined()
      else if (first >= size) expect(range).toBeNull()
      else expect(range).toEqual({ from: first, to: Math.min(last + 1, size) })
    }),
  )
})
