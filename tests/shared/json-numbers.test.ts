/** Which numbers of a JSON text come back as others, whatever stands around them. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { changedNumber } from '../../shared/json-numbers.ts'
import { atOnce } from '../../shared/slices.ts'

const changedIn = (text: string) => atOnce(changedNumber(new TextEncoder().encode(text)))

test.each(['1234567890123456789', '-9007199254740993', '1e999', '-1E+400', '1'.repeat(400), '1152921504606846976'])(
  '%s is changed',
  (number) => {
    expect(changedIn(number)).toBe(number)
    expect(changedIn(`{"a": [0, {"b" :${number}}], "c": "${number}"}`)).toBe(number)
    expect(changedIn(`[1,\n${number}\n]`)).toBe(number)
  },
)

test.each([
  '9007199254740993.5',
  '0.12345678901234567890',
  '1e300',
  '9223372036854776000',
  '1e-999',
  '-0',
  '9007199254740992',
])('%s is not', (number) => expect(changedIn(`[${number}]`)).toBe(undefined))

test('what JSON.stringify has written is kept; digits in strings are no numbers', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.double({ noNaN: true, noDefaultInfinity: true }), (value, number) => {
      expect(changedIn(JSON.stringify([value, number, `"\\${number}1234567890123456789`]))).toBe(undefined)
    }),
  )
})

test('an integer is kept if it is printed as it was written', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (integer) => {
      const isKept = String(Number(integer)) === String(integer)
      expect(changedIn(`[${integer}]`)).toBe(isKept ? undefined : String(integer))
    }),
  )
})
