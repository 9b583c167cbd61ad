/**
 * Goal: exactly the placeholders of a value are found and replaced, everything else stays, and nothing that is put in is
 * searched. Method: random JSON with placeholders in random places against a plain recursion.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  fill,
  findPlaceholders,
  hasPlaceholder,
  MAX_PLACE_FAULTS,
  MAX_PLACEHOLDERS,
  mentionsPlaceholder,
  mentionsPlaceholderInSteps,
  pathText,
} from '../../../control/rules/placeholders.ts'
import { runSync } from '../../../shared/process/steps.ts'

const placeholder = fc.oneof(
  fc.record({ $from: fc.constantFrom('a', 'b') }),
  fc.record({ $from: fc.constant('a'), default: fc.constantFrom(null, { $from: 'x' }) }),
  fc.record({ $param: fc.constantFrom('p', 'q') }),
  fc.record({ $literal: fc.jsonValue() }),
)

const { value: withPlaceholders } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.jsonValue({ maxDepth: 1 }),
    placeholder,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', '0', 'a')), tie('value'), { maxKeys: 4 }),
  ),
}))

const isPlaceholder = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  ['$from', '$param', '$literal'].some((name) => Object.hasOwn(value, name))

function replaced(value: unknown, next: () => unknown): unknown {
  if (isPlaceholder(value)) return next()
  if (Array.isArray(value)) return value.map((member) => replaced(member, next))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replaced(member, next)]))
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('the placeholders of a value are replaced in order, and nothing else is', () => {
  fc.assert(
    fc.property(withPlaceholders, (given) => {
      const value = plain(given)
      const before = JSON.stringify(value)
      const { places, faults } = runSync(findPlaceholders(value))
      expect(faults).toEqual([])
      const values = places.map((_, i) => ({ $from: `put in ${i}` }))
      let i = 0
      expect(JSON.stringify(runSync(fill(value, places, values)))).toBe(
        JSON.stringify(replaced(value, () => values[i++])),
      )
      expect(i).toBe(places.length)
      expect(JSON.stringify(value)).toBe(before)
      expect(hasPlaceholder(value)).toBe(places.length > 0)
      if (places.length > 0) expect(mentionsPlaceholder(before)).toBe(true)
      else expect(runSync(fill(value, places, []))).toBe(value)
    }),
    { numRuns: 2_000 },
  )
})

describe('an object with the name of a placeholder is refused where', () => {
  test.each<[string, unknown, string, string]>([
    [
      'another name is beside it',
      { a: [{ $from: 'x', pth: '/a' }] },
      'params.a[0]',
      'unknown field "pth" beside "$from" (did you mean "path"?)',
    ],
    [
      'the name of another one is beside it',
      { $param: 'x', $from: 'y' },
      'params',
      'unknown field "$param" beside "$from"',
    ],
    [
      'a default is beside a parameter',
      { a: { $param: 'x', default: 1 } },
      'params.a',
      'unknown field "default" beside "$param"',
    ],
    ['a literal has a neighbour', { a: { $literal: 1, b: 2 } }, 'params.a', 'unknown field "b" beside "$literal"'],
    [
      'the name of a parameter is no text',
      { 'a b': { $param: 7 } },
      'params["a b"]',
      '$param: expected the name of a parameter',
    ],
    [
      'the path is no pointer',
      { $from: 'x', path: 'y' },
      'params',
      'path: expected a JSON Pointer, which begins with "/"',
    ],
  ])('%s', (_, value, at, text) => {
    const { places, faults } = runSync(findPlaceholders(value))
    expect(places).toEqual([])
    expect(faults.map((fault) => [pathText('params', fault.path), fault.text])).toEqual([[at, text]])
  })

  test('there are too many', () => {
    const many = (count: number) => Array.from({ length: count }, () => ({ $param: 'a' }))
    expect(runSync(findPlaceholders(many(MAX_PLACEHOLDERS))).faults).toEqual([])
    expect(runSync(findPlaceholders(many(MAX_PLACEHOLDERS + 1))).faults.map(({ text }) => text)).toEqual([
      `expected at most ${MAX_PLACEHOLDERS} placeholders in a task`,
    ])
  })
})

test('a value with a great number of faults is searched for the first of them only', () => {
  const { faults } = runSync(findPlaceholders({ list: Array.from({ length: 50_000 }, () => ({ $from: 1 })) }))
  expect(faults).toHaveLength(MAX_PLACE_FAULTS)
  expect(pathText('params', faults[0]!.path)).toBe('params.list[0]')
})

test('a literal is not searched', () => {
  const { places } = runSync(findPlaceholders({ a: { $literal: { $from: 'x', b: { $param: 1 } } } }))
  expect(places).toEqual([{ path: ['a'], placeholder: { kind: 'literal', value: { $from: 'x', b: { $param: 1 } } } }])
})

test.each([
  ['{"a":{"$from":"b"}}', true],
  ['{"a":{"\\u0024from":"b"}}', true],
  ['{"a":"costs $5","b$":1}', false],
])('the text %s may have a placeholder: %p', (text, expected) => {
  expect(mentionsPlaceholder(text)).toBe(expected)
  for (const before of [0, 1024 * 1024 - 3, 1024 * 1024 - 1, 3 * 1024 * 1024]) {
    const body = Buffer.from(`${' '.repeat(before)}${text}`)
    expect(runSync(mentionsPlaceholderInSteps(body))).toBe(expected)
  }
})

test('a path is shown as it is written in code, and shortened', () => {
  expect(pathText('input', [])).toBe('input')
  expect(pathText('params', ['a-b', 0, 'c d', ''])).toBe('params.a-b[0]["c d"][""]')
  expect(
    pathText(
      'params',
      Array.from({ length: 150 }, () => 'abc'),
    ),
  ).toHaveLength(203)
})
