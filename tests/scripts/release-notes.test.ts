/** The release notes are the section of the version in CHANGELOG.md. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { releaseNotes } from '../../scripts/release/notes.ts'
import { PLATFORMS, platformsNamed } from '../../scripts/release/platforms.ts'
import { VERSION } from '../../shared/process/version.ts'
import { ROOT } from '../support/deploy-files.ts'

const CHANGELOG = '# Changelog\n\nText.\n\n## 1.10.0\n\nNew.\n\n### Graphs\n\n- a\n\n## 1.1.0 (2026-01-02)\n\n- old\n'

describe('release notes', () => {
  test.each([
    ['1.10.0', 'New.\n\n### Graphs\n\n- a\n'],
    ['1.1.0', '- old\n'],
  ])('of %s', (version, notes) => {
    expect(releaseNotes(CHANGELOG, version)).toBe(notes)
  })

  test('of a version without a section', () => {
    expect(() => releaseNotes(CHANGELOG, '1.1')).toThrow('CHANGELOG.md has no section "## 1.1"')
    expect(() => releaseNotes('## 2.0.0\n\n## 1.0.0\n\n- a\n', '2.0.0')).toThrow('is empty')
  })

  test('of the present version', () => {
    expect(releaseNotes(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), VERSION)).toContain('### ')
  })
})

test('an unknown platform is told with the known ones', () => {
  expect(platformsNamed([])).toBe(PLATFORMS)
  expect(platformsNamed(['darwin-arm64']).map(({ target }) => target)).toEqual(['bun-darwin-arm64'])
  expect(() => platformsNamed(['windows-x64'])).toThrow(/^unknown platform "windows-x64" \(known: linux-x64, /)
})
