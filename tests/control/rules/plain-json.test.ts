/**
 * Goal: a copy is what JSON makes of a value, or the reason why there is none, in bounded work. Method: `JSON.parse` of
 * `JSON.stringify` beside it, on random values; by hand, values that break or hang whoever reads them without care.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { NotPlainJson, plainJson } from '../../../control/rules/plain-json.ts'

const LIMITS = { levels: 20, values: 1_000, characters: 10_000 }

const jsonOf = (value: unknown): unknown => {
  const text = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}

describe('a plain copy', () => {
  test('is what JSON makes of the value', () => {
    const values = fc.anything({
      ...{ withDate: true, withMap: true, withSet: true, withTypedArray: true, withBoxedValues: true },
      ...{ withNullPrototype: true, withObjectString: true, withSparseArray: true },
      ...{ key: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'toString', 'length')), maxDepth: 4 },
    })
    fc.assert(
      fc.property(values, (value) => {
        expect(plainJson(value, LIMITS)).toEqual(jsonOf(value))
        expect(JSON.stringify(plainJson(value, LIMITS))).toEqual(JSON.stringify(value))
      }),
      { numRuns: 500 },
    )
  })

  test('has the members of the original in their order, an own __proto__ too', () => {
    const text = '{"b":1,"__proto__":{"x":[1,null]},"a":{"__proto__":2},"":0}'
    const copy = plainJson(JSON.parse(text), LIMITS)
    expect(JSON.stringify(copy)).toBe(text)
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
  })

  test('has no negative zero, as JSON has none', () => {
    expect(Object.is((plainJson({ a: -0 }, LIMITS) as { a: number }).a, 0)).toBe(true)
  })

  test('does not change with the original', () => {
    const original = { list: [1], nested: { a: 1 } }
    const copy = plainJson(original, LIMITS)
    original.list.push(2)
    original.nested.a = 2
    expect(copy).toEqual({ list: [1], nested: { a: 1 } })
  })

  test('of a frozen object of scalars is one and the same', () => {
    const shared = Object.freeze({ ok: true, message: '' })
    expect(plainJson(shared, LIMITS)).toEqual({ ok: true, message: '' })
    expect(plainJson(shared, LIMITS)).toBe(plainJson(shared, LIMITS))
    const inner = { a: 1 }
    const changing = Object.freeze({ inner })
    plainJson(changing, LIMITS)
    inner.a = 2
    expect(plainJson(changing, LIMITS)).toEqual({ inner: { a: 2 } })
  })
})

const cycle: Record<string, unknown> = {}
cycle.next = cycle
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
/** One node for each level, and 2 ** levels values as JSON. */
const shared = (levels: number): unknown => {
  let node: unknown = 1
  for (let level = 0; level < levels; level++) node = [node, node]
  return node
}
const without = () => {
  throw Object.create(null)
}
const revoked = Proxy.revocable({}, {})
revoked.revoke()

describe('there is no copy of', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['a BigInt', () => 10n, /^a BigInt is not a JSON value$/],
    ['a boxed BigInt', () => Object(10n), /^a BigInt/],
    ['a BigInt within', () => ({ usage: [{ bytes: 1n }] }), /^usage\.0\.bytes: a BigInt is not a JSON value$/],
    [
      'a toJSON that throws',
      () => ({ at: { toJSON: without } }),
      /^at: reading it throws: a value that cannot be turned/,
    ],
    ['a toJSON that gives a BigInt', () => ({ toJSON: () => 1n }), /^a BigInt/],
    [
      'a getter that throws',
      () => ({
        a: 1,
        get b() {
          return without()
        },
      }),
      /^b: reading it throws/,
    ],
    [
      'a toJSON getter that throws',
      () => ({
        get toJSON() {
          return without()
        },
      }),
      /reading it throws/,
    ],
    ['a proxy that refuses', () => new Proxy({}, { ownKeys: without }), /^reading it throws/],
    ['a proxy that is revoked', () => ({ p: revoked.proxy }), /^p: reading it throws/],
    ['a proxy without an end', () => endless(), /nested deeper than 20 levels$/],
    ['a cycle', () => cycle, /^next\.next\.next\.next\.next\.next\.\.\.: nested deeper than 20 levels$/],
    ['what is nested too deep', () => nested(21), /nested deeper than 20 levels$/],
    ['41 levels of shared references', () => shared(41), /more than 1000 values|deeper than 20 levels/],
    ['19 levels of shared references', () => shared(19), /^it has more than 1000 values$/],
    ['too many values', () => Array.from({ length: 1_001 }, () => 0), /^it has more than 1000 values$/],
    ['an array that is long and empty', () => new Array(2 ** 32 - 1), /^it has more than 1000 values$/],
    ['a large buffer', () => new Uint8Array(64 * 1024 * 1024), /^it has more than 1000 values$/],
    ['too long a text', () => ({ text: 'x'.repeat(10_001) }), /^it has more than 10000 characters$/],
    ['too long a name', () => ({ ['x'.repeat(10_001)]: 1 }), /^it has more than 10000 characters$/],
    ['many texts', () => Array.from({ length: 101 }, () => 'x'.repeat(100)), /^it has more than 10000 characters$/],
  ])('%s', (_, make, reason) => {
    let fault: unknown
    try {
      plainJson(make(), LIMITS)
    } catch (error) {
      fault = error
    }
    expect(fault).toBeInstanceOf(NotPlainJson)
    expect((fault as Error).message).toMatch(reason)
    expect((fault as Error).message.length).toBeLessThan(1_000)
  })

  function endless(): object {
    return new Proxy({ next: 1 }, { get: (_, name) => (name === 'toJSON' ? undefined : endless()) })
  }
})

test('41 levels of shared references are read no further than the limit', () => {
  let reads = 0
  let node: object = {}
  for (let level = 0; level < 41; level++) {
    const child = node
    node = new Proxy([child, child], {
      get(target, name, receiver) {
        reads++
        return Reflect.get(target, name, receiver)
      },
    })
  }
  expect(() => plainJson(node, { ...LIMITS, levels: 210 })).toThrow('it has more than 1000 values')
  expect(reads).toBeLessThan(5_000)
})

test('what is at a limit is copied', () => {
  const atLimits = [nested(20), Array.from({ length: 1_000 }, () => 0), 'x'.repeat(10_000)]
  for (const value of atLimits) expect(plainJson(value, LIMITS)).toEqual(value)
})
