/** Globs: a table, the definition as a recursive function against random texts, and texts that trap backtracking. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runSync } from '../../../shared/process/steps.ts'
import { MAX_GLOB_CHARACTERS, matchesGlob } from '../../../shared/text/glob.ts'

const matches = (text: string, glob: string) => runSync(matchesGlob(text, glob))

test.each([
  ['', '', true],
  ['', '*', true],
  ['', '?', false],
  ['a', '', false],
  ['abc', 'abc', true],
  ['abc', 'ab', false],
  ['ab', 'abc', false],
  ['abc', 'a?c', true],
  ['abc', 'a*', true],
  ['abc', '*c', true],
  ['abc', '*b*', true],
  ['abc', '**', true],
  ['abc', '?*?', true],
  ['a', '?*?', false],
  ['release-1.2', 'release-*', true],
  ['a\nb', 'a*b', true],
  ['a\nb', 'a?b', true],
  ['😀', '?', true],
  ['a.c', 'a.c', true],
  ['abc', 'a.c', false],
  ['[a]', '[a]', true],
  ['a', '[a]', false],
  ['A', 'a', false],
])('%j matches %j: %p', (text, glob, expected) => {
  expect(matches(text, glob)).toBe(expected)
})

/** The definition. */
function means(text: readonly string[], glob: readonly string[]): boolean {
  const [sign, ...rest] = glob
  if (sign === undefined) return text.length === 0
  if (sign === '*') return means(text, rest) || (text.length > 0 && means(text.slice(1), glob))
  return text.length > 0 && (sign === '?' || sign === text[0]) && means(text.slice(1), rest)
}

test('it is what the definition says', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', '😀'), { maxLength: 8 })
  const signs = fc.array(fc.constantFrom('a', 'b', '😀', '*', '?'), { maxLength: 6 })
  fc.assert(
    fc.property(letters, signs, (text, glob) => matches(text.join(''), glob.join('')) === means(text, glob)),
    { numRuns: 2_000 },
  )
})

test('a glob of many words is what its parts are', () => {
  const long = fc.array(fc.constantFrom('a', 'b'), { minLength: 60, maxLength: 200 }).map((all) => all.join(''))
  fc.assert(
    fc.property(long, fc.nat(), fc.nat(), (text, from, to) => {
      const [start, end] = [from % text.length, to % text.length]
      const glob = `${text.slice(0, start)}*${text.slice(Math.max(start, end))}`
      expect(matches(text, glob)).toBe(true)
      expect(matches(text, glob.replaceAll('a', '?'))).toBe(true)
      expect(matches(`${text}c`, glob)).toBe(glob.endsWith('*'))
    }),
  )
})

test('no text traps it, and it pauses', () => {
  const text = 'a'.repeat(1024 * 1024)
  expect(matches(text, '*a*a*a*b')).toBe(false)
  expect(matches(text, `${'*a'.repeat(30)}*b`)).toBe(false)
  expect(matches(text, '*a*a*a*')).toBe(true)
  const steps = matchesGlob(text, `*${'a'.repeat(MAX_GLOB_CHARACTERS - 2)}b`)
  let pauses = 0
  for (let step = steps.next(); !step.done; step = steps.next()) pauses++
  expect(pauses).toBeGreaterThan(500)
})
