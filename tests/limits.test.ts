/** Each limit of docs/limits.md has a value, and a test that meets it. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { currentLimitsPage } from '../scripts/docs.ts'
import { LIMITS } from '../scripts/limits.ts'

const limits = Object.values(LIMITS).flat()

test('docs/limits.md has the limits of the code (else: bun run docs)', () => {
  expect(readFileSync(join(dirname(import.meta.dir), 'docs/limits.md'), 'utf8')).toBe(currentLimitsPage())
})

describe('a limit', () => {
  test.each(limits.map((limit) => [`${limit.of} (${limit.name})`, limit] as const))('%s', (_, { value, test: met }) => {
    expect(value).not.toMatch(/undefined|NaN|^$/)
    const [file, text] = met
    expect(text.length).toBeGreaterThan(3)
    expect(readFileSync(join(import.meta.dir, file), 'utf8'), `${file} has no "${text}"`).toContain(text)
  })
})
