/**
 * JSON Pointer: the examples of RFC 6901, what is no pointer, and every place of random values.
 *
 * The property test walks each value itself and asks for each place by the pointer that it has built on the way.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_POINTER_CHARACTERS, pointerFault, pointerValue } from '../../../control/json/json-pointer.ts'

/** Section 5 of RFC 6901. */
const EXAMPLE = {
  foo: ['bar', 'baz'],
  '': 0,
  'a/b': 1,
  'c%d': 2,
  'e^f': 3,
  'g|h': 4,
  'i\\j': 5,
  'k"l': 6,
  ' ': 7,
  'm~n': 8,
}

describe('pointerValue', () => {
  test.each([
    ['', EXAMPLE],
    ['/foo', ['bar', 'baz']],
    ['/foo/0', 'bar'],
    ['/', 0],
    ['/a~1b', 1],
    ['/c%d', 2],
    ['/e^f', 3],
    ['/g|h', 4],
    ['/i\\j', 5],
    ['/k"l', 6],
    ['/ ', 7],
    ['/m~0n', 8],
  ])('finds %j', (pointer, value) => {
    expect(pointerFault(pointer)).toBeUndefined()
    expect(pointerValue(EXAMPLE, pointer)).toEqual({ found: true, value })
  })

  test.each([
    ['/foo/2'],
    ['/foo/-'],
    ['/foo/-1'],
    ['/foo/00'],
    ['/foo/01'],
    ['/foo/1e0'],
    ['/foo/0x1'],
    ['/foo/ 1'],
    ['/foo/1.0'],
    ['/foo/length'],
    ['/foo/map'],
    ['/foo/'],
    ['/foo/0/0'],
    ['/foo/0/length'],
    ['/constructor'],
    ['/__proto__'],
    ['/toString'],
    ['//0'],
    ['/a/b'],
    ['/m~01n'],
  ])('finds nothing at %j', (pointer) => {
    expect(pointerFault(pointer)).toBeUndefined()
    expect(pointerValue(EXAMPLE, pointer)).toEqual({ found: false })
  })

  test('null is a value; scalars and null have nothing below them', () => {
    expect(pointerValue({ a: null }, '/a')).toEqual({ found: true, value: null })
    for (const value of [null, 'text', 7, true, undefined]) {
      expect(pointerValue(value, '')).toEqual({ found: true, value })
      expect(pointerValue(value, '/0')).toEqual({ found: false })
      expect(pointerValue(value, '/length')).toEqual({ found: false })
    }
  })

  test('names of a prototype are names like any other where a value has them', () => {
    const value = JSON.parse('{"__proto__": {"constructor": 1}, "hasOwnProperty": 2}')
    expect(pointerValue(value, '/__proto__/constructor')).toEqual({ found: true, value: 1 })
    expect(pointerValue(value, '/hasOwnProperty')).toEqual({ found: true, value: 2 })
    expect(pointerValue(value, '/__proto__/toString')).toEqual({ found: false })
  })
})

describe('pointerFault', () => {
  test.each([
    ['a', 'expected a JSON Pointer, which begins with "/"'],
    ['result/stdout', 'expected a JSON Pointer, which begins with "/"'],
    ['#/a', 'expected a JSON Pointer, which begins with "/"'],
    [' /a', 'expected a JSON Pointer, which begins with "/"'],
    ['/a~', 'expected a JSON Pointer, with "~0" for "~" and "~1" for "/" in a name'],
    ['/a~2b', 'expected a JSON Pointer, with "~0" for "~" and "~1" for "/" in a name'],
    ['/~~0', 'expected a JSON Pointer, with "~0" for "~" and "~1" for "/" in a name'],
    [`/${'a'.repeat(MAX_POINTER_CHARACTERS)}`, 'expected at most 1000 characters, got 1001'],
  ])('of %j', (pointer, fault) => {
    expect(pointerFault(pointer)).toBe(fault)
  })

  test('the longest pointer is well formed', () => {
    expect(pointerFault(`/${'a'.repeat(MAX_POINTER_CHARACTERS - 1)}`)).toBeUndefined()
  })
})

/** Every place of `value` with its pointer. */
function* places(value: unknown, at = ''): Generator<readonly [pointer: string, value: unknown]> {
  yield [at, value]
  if (typeof value !== 'object' || value === null) return
  for (const key of Object.keys(value)) {
    const name = key.replaceAll('~', '~0').replaceAll('/', '~1')
    yield* places((value as Record<string, unknown>)[key], `${at}/${name}`)
  }
}

const key = fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('~', '/', '~1', '~01', '0', 'length', '__proto__'))
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, 0, -1.5, '', 'text'),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
})).value

test('every place of a value is found under its pointer', () => {
  fc.assert(
    fc.property(json, (value) => {
      for (const [pointer, expected] of places(value)) {
        expect(pointerFault(pointer)).toBeUndefined()
        const pointed = pointerValue(value, pointer)
        expect(pointed.found && Object.is(pointed.value, expected)).toBe(true)
      }
    }),
  )
})

test('a pointer finds a place of the value or nothing, and changes nothing', () => {
  fc.assert(
    fc.property(json, fc.array(key, { maxLength: 4 }), (value, names) => {
      const pointer = names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
      const before = JSON.stringify(value)
      const pointed = pointerValue(value, pointer)
      const expected = new Map(places(value))
      expect(pointed.found).toBe(expected.has(pointer))
      if (pointed.found) expect(Object.is(pointed.value, expected.get(pointer))).toBe(true)
      expect(JSON.stringify(value)).toBe(before)
    }),
  )
})
