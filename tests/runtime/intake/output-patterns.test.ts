/** Goal: patterns match the paths that people expect, quickly. Method: a table; random patterns against a plain search. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { OutputPatterns } from '../../../runtime/intake/output-patterns.ts'

const matches = (pattern: string, path: string) => new OutputPatterns([pattern]).matches(path.split('/'))

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
    ['**/*.log', 'a.log', true],
    ['**/*.log', 'a/b/c.log', true],
    ['**/*.log', 'a/b/c.txt', false],
    ['a/**/z', 'a/z', true],
    ['a/**/z', 'a/b/c/z', true],
    ['a/**/z', 'a/b/c/y', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['ü?', 'ü😀', true],
    ['[ab]', 'a', false],
    ['{a,b}', 'a', false],
    ['a**b', 'axxb', true],
  ])('%s and %s: %j', (pattern, path, isMatch) => {
    expect(matches(pattern, path)).toBe(isMatch)
  })

  test('is matched like a plain search would, and directories on the way are entered', () => {
    const plain = (pattern: readonly string[], names: readonly string[]): boolean => {
      const [first, ...rest] = pattern
      if (first === undefined) return names.length === 0
      if (first !== '**') return names[0] === first && plain(rest, names.slice(1))
      return names.some((_, i) => plain(rest, names.slice(i))) || plain(rest, [])
    }
    const name = fc.constantFrom('a', 'b')
    const pattern = fc.array(fc.constantFrom('a', 'b', '**'), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(pattern, fc.array(name, { minLength: 1, maxLength: 6 }), (pattern, names) => {
        const patterns = new OutputPatterns([pattern.join('/')])
        const isMatch = plain(pattern, names)
        expect(patterns.matches(names)).toBe(isMatch)
        if (isMatch) for (let i = 1; i < names.length; i++) expect(patterns.mayMatchBelow(names.slice(0, i))).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['dist/**', 'dist', true],
    ['dist/**', 'node_modules', false],
    ['a/b', 'a', true],
    ['a/b', 'a/b', false],
    ['*.xml', 'a', false],
    ['**/x', 'any/where', true],
  ])('%s may match below %s: %j', (pattern, path, may) => {
    expect(new OutputPatterns([pattern]).mayMatchBelow(path.split('/'))).toBe(may)
  })

  test('of many stars is not slow', () => {
    expect(matches(`${'*a'.repeat(500)}b`, 'a'.repeat(250))).toBe(false)
    expect(matches(`${'**/a/'.repeat(200)}b`, 'a/'.repeat(60).slice(0, -1))).toBe(false)
  })
})
