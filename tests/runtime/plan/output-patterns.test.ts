/** Goal: patterns match the paths that people expect, quickly. Method: a table; random patterns against a plain search. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isMatch, OutputPatterns, type Places } from '../../../runtime/plan/output-patterns.ts'
import { quickestMs } from '../../support/quickest.ts'

const walked = (pattern: string, path: string): Places => {
  const patterns = new OutputPatterns([pattern])
  return path.split('/').reduce((places, name) => patterns.enter(places, name), patterns.start)
}
const matches = (pattern: string, path: string) => isMatch(walked(pattern, path))

describe('a pattern', () => {
  test.each([
    ['report.xml', 'report.xml', true],
    ['report.xml', 'a/report.xml', false],
    ['*.xml', 'report.xml', true],
    ['*.xml', '.xml', true],
    ['*.xml', 'a/report.xml', false],
    ['*', '.hidden', true],
    ['dist/**', 'dist/a', true],
    ['dist/**', 'dist/a/b', true],
    ['dist/**', 'dist', true],
    ['dist/**', 'distant/a', false],
    ['dist', 'dist/a/b', true],
    ['**/*.log', 'a.log', true],
    ['**/*.log', 'a/b/c.log', true],
    ['**/*.log', 'a/b/c.txt', false],
    ['**', 'a/b', true],
    ['a/**/z', 'a/z', true],
    ['a/**/z', 'a/b/c/z', true],
    ['a/**/z', 'a/b/c/y', false],
    ['**/**/z', 'z', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['ü?', 'ü😀', true],
    ['a*b', 'a\nb', true],
    ['[ab]', 'a', false],
    ['{a,b}', 'a', false],
    ['a**b', 'axxb', true],
    ['a**b', 'ax/xb', false],
    ['__proto__/*', '__proto__/constructor', true],
  ])('%s and %j: %p', (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected)
  })

  test('is matched like a plain search would, and directories on the way are entered', () => {
    const plain = (pattern: readonly string[], names: readonly string[]): boolean => {
      const [first, ...rest] = pattern
      if (first === undefined) return true // all below what matches
      if (first !== '**') return names[0] === first && plain(rest, names.slice(1))
      return names.some((_, i) => plain(rest, names.slice(i))) || plain(rest, [])
    }
    const name = fc.constantFrom('a', 'b')
    const pattern = fc.array(fc.constantFrom('a', 'b', '**'), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(pattern, fc.array(name, { minLength: 1, maxLength: 6 }), (pattern, names) => {
        const text = pattern.join('/')
        const expected = plain(pattern, names)
        expect(matches(text, names.join('/'))).toBe(expected)
        if (!expected) return
        for (let i = 1; i < names.length; i++) {
          expect(walked(text, names.slice(0, i).join('/')).length).toBeGreaterThan(0)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['dist/**', 'dist', true],
    ['dist/**', 'node_modules', false],
    ['a/b', 'a', true],
    ['a/b', 'c', false],
    ['*.xml', 'a', false],
    ['**/x', 'any/where', true],
  ])('%s may match at or below %s: %p', (pattern, path, may) => {
    expect(walked(pattern, path).length > 0).toBe(may)
  })

  test('of many stars is not slow', () => {
    const tookMs = quickestMs(() => {
      expect(matches(`${'*a'.repeat(500)}b`, 'a'.repeat(250))).toBe(false)
      expect(matches(`${'**/a/'.repeat(200)}b`, 'a/'.repeat(60).slice(0, -1))).toBe(false)
    })
    expect(tookMs).toBeLessThan(500)
  })
})

test.each([
  ['the longest run of **', Array.from({ length: 4 }, () => `${'**/'.repeat(340)}zz`)],
  ['runs of ** of different lengths', Array.from({ length: 4 }, (_, i) => `${'**/'.repeat(340 - i)}zz`)],
  ['the same pattern in 64 places', Array.from({ length: 64 }, () => '**/a*/**/b*')],
])('%s costs no more than one pattern', (_, patterns) => {
  const made = new OutputPatterns(patterns)
  const tookMs = quickestMs(() => {
    for (let i = 0; i < 10_000; i++) made.enter(made.start, `a${i}`)
  })
  expect(tookMs).toBeLessThan(1_000)
  expect(made.start.length).toBe(2)
})

test('several patterns, or none', () => {
  const both = new OutputPatterns(['a/b', 'a/c', '*/d'])
  const after = (...names: string[]) => names.reduce((places, name) => both.enter(places, name), both.start)
  expect(['b', 'c', 'd', 'e'].map((name) => isMatch(after('a', name)))).toEqual([true, true, true, false])
  expect(new OutputPatterns([]).start).toEqual([])
})
