/** Conditions: which ones are well formed, and which values pass. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { operandFault, passes, type When, whenIn } from '../../../control/rules/when.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { MAX_GLOB_CHARACTERS } from '../../../shared/text/glob.ts'

const when = (fields: object) => whenIn({ $from: 'a', ...fields })

describe('a condition', () => {
  test('is a reference with one test', () => {
    expect(when({ path: '/status', equals: 'success' })).toEqual({
      reference: { id: 'a', path: '/status' },
      test: { kind: 'equals', operand: 'success' },
    })
    expect(when({ default: null, as: 'json', in: [] })).toEqual({
      reference: { id: 'a', path: '/result', default: { value: null }, as: 'json' },
      test: { kind: 'in', operand: [] },
    })
    expect(when({ not: null })).toMatchObject({ test: { kind: 'not', operand: null } })
  })

  test.each([
    [{}, 'when: expected exactly one of equals, not, in, matches'],
    [{ equals: 1, not: 2 }, 'when: expected exactly one of equals, not, in, matches'],
    [{ equal: 1 }, 'when: unknown field "equal" (did you mean "equals"?)'],
    [{ eq: 1 }, 'when: unknown field "eq" (did you mean "equals"?)'],
    [{ not_equals: 1 }, 'when: unknown field "not_equals" (did you mean "not"?)'],
    [{ $from: '', equals: 1 }, 'when.$from: expected the id of a task'],
    [{ path: 'status', equals: 1 }, 'when.path: expected a JSON Pointer, which begins with "/"'],
    [{ as: 'xml', equals: 1 }, 'when.as: expected text, json, lines'],
    [{ in: 'a' }, 'when.in: expected a list of values'],
    [{ matches: 1 }, 'when.matches: expected a text with "*" and "?"'],
    [
      { matches: 'a'.repeat(MAX_GLOB_CHARACTERS + 1) },
      `when.matches: expected at most ${MAX_GLOB_CHARACTERS} characters, got ${MAX_GLOB_CHARACTERS + 1}`,
    ],
  ])('%j is none', (fields, fault) => {
    expect(when(fields)).toBe(fault)
  })

  test.each([
    [{ equals: { a: [{ $param: 'b' }] } }, 'when.equals: expected a value without placeholders'],
    [{ in: [1, { $from: 1 }] }, 'when.in: expected a value without placeholders'],
    [{ in: [1, { from: 'a' }] }, undefined],
  ])('%j compares with data', (fields, fault) => {
    expect(runSync(operandFault(when(fields) as When))).toBe(fault!)
  })

  test('that compares with a million values is looked at in steps', () => {
    const steps = operandFault(when({ in: new Array(1_000_000).fill(0) }) as When)
    let count = 0
    while (!steps.next().done) count++
    expect(count).toBeGreaterThan(100)
  })
})

const isMet = (fields: object, value: unknown) => runSync(passes((when(fields) as When).test, value))

test.each<[object, unknown, boolean | undefined]>([
  [{ equals: 'a' }, 'a', true],
  [{ equals: 1 }, '1', false],
  [{ equals: null }, null, true],
  [{ equals: null }, 0, false],
  [{ equals: { a: 1, b: [2] } }, { b: [2], a: 1 }, true],
  [{ equals: { a: 1 } }, { a: 1, b: 2 }, false],
  [{ equals: [1, 2] }, [2, 1], false],
  [{ equals: [] }, {}, false],
  [{ equals: {} }, JSON.parse('{"__proto__": 1}'), false],
  [{ equals: { toString: 1 } }, { a: 1 }, false],
  [{ not: 'a' }, 'a', false],
  [{ not: 'a' }, ['a'], true],
  [{ in: ['a', { b: 1 }] }, { b: 1 }, true],
  [{ in: ['a'] }, 'b', false],
  [{ in: [] }, null, false],
  [{ matches: 'release-*' }, 'release-1', true],
  [{ matches: 'release-*' }, 'beta', false],
  [{ matches: '*' }, 1, undefined],
  [{ matches: '*' }, null, undefined],
])('%j and %j: %p', (fields, value, expected) => {
  expect(isMet(fields, value)).toBe(expected!)
})

test('equality is that of JSON values, in any order of names', () => {
  const value = fc.jsonValue().map((each) => JSON.parse(JSON.stringify(each)) as unknown)
  const shuffled = (each: unknown): unknown =>
    typeof each !== 'object' || each === null
      ? each
      : Array.isArray(each)
        ? each.map(shuffled)
        : Object.fromEntries(
            Object.entries(each)
              .reverse()
              .map(([name, member]) => [name, shuffled(member)]),
          )
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(isMet({ equals: a }, shuffled(a))).toBe(true)
      expect(isMet({ not: a }, shuffled(a))).toBe(false)
      expect(isMet({ equals: a }, b)).toBe(Bun.deepEquals(a, b, true))
      expect(isMet({ in: [b, a] }, a)).toBe(true)
    }),
  )
})
