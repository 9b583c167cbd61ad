/** What docs/security.md says of the attacks is tried by the tests that it names. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { controlSettings } from '../control/config.ts'
import { serveSettings } from '../runtime/config.ts'
import { isLoopback } from '../shared/http-guard.ts'

const DOCS = join(dirname(import.meta.dir), 'docs')
const page = readFileSync(join(DOCS, 'security.md'), 'utf8')

/** The rows of all tables of attacks, without heads. */
const rows = [...page.matchAll(/<!-- begin attacks -->\n([\s\S]*?)<!-- end attacks -->/g)].flatMap(([, table]) =>
  table!
    .trim()
    .split('\n')
    .slice(2)
    .map((line) => line.slice(2, -2).split(' | ')),
)

describe('docs/security.md', () => {
  test('has the attacks in rows of three columns', () => {
    expect(rows.length).toBeGreaterThan(40)
    expect(rows.filter((cells) => cells.length !== 3)).toEqual([])
  })

  test.each(rows.map((cells) => [cells[0]!, cells[2]!]))('names tests that exist: %s', (_, tests) => {
    for (const named of tests.split('; [').map((part) => part.replace(/^\[/, ''))) {
      const [, path, title] = /^[\w-]+\]\(([^)]+)\): (.+)$/.exec(named) ?? []
      expect(named, 'expected [file](path): title').toBe(path === undefined ? '' : named)
      const wanted = path!.endsWith('.c') ? `"${title}"` : title!
      expect(readFileSync(join(DOCS, path!), 'utf8'), `${path} has no "${title}"`).toContain(wanted)
      expect(wanted.length).toBeGreaterThan(5)
    }
  })
})

test('both services listen on loopback unless told otherwise', () => {
  for (const { default: address } of [controlSettings.addr, serveSettings.listenAddr]) {
    expect(isLoopback(String(address).replace(/:\d+$/, ''))).toBe(true)
  }
})

test('the user of sandboxes is not the overflow uid, to which files of unmapped users seem to belong', () => {
  const overflowUid = 65534 // unless an administrator changes kernel.overflowuid
  expect([0, overflowUid, overflowUid + 1]).not.toContain(serveSettings.sandboxUid.default)
})
