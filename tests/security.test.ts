/** What docs/security.md says of the attacks is tried by the tests that it names. */
import { describe, expect, test } from 'bun:test'
import { controlSettings } from '../control/config.ts'
import { serveSettings, type UidRange } from '../runtime/config.ts'
import { isLoopback } from '../shared/http/guard.ts'
import { expectNamedTests, rowsOf } from './support/named-tests.ts'

const rows = rowsOf('security.md', 'attacks')

describe('docs/security.md', () => {
  test('has the attacks in rows of three columns', () => {
    expect(rows.length).toBeGreaterThan(40)
    expect(rows.filter((cells) => cells.length !== 3)).toEqual([])
  })

  test.each(rows.map((cells) => [cells[0]!, cells[2]!]))('names tests that exist: %s', (_, tests) => {
    expectNamedTests(tests)
  })
})

test('both services listen on loopback unless told otherwise', () => {
  for (const { default: address } of [controlSettings.addr, serveSettings.listenAddr]) {
    expect(isLoopback(String(address).replace(/:\d+$/, ''))).toBe(true)
  }
})

test('the user of sandboxes is not the overflow uid, to which files of unmapped users seem to belong', () => {
  const overflowUid = 65534 // unless an administrator changes kernel.overflowuid
  const { first, last } = serveSettings.sandboxUids.parse(serveSettings.sandboxUids.default) as UidRange
  for (const uid of [0, overflowUid, overflowUid + 1]) expect(uid >= first && uid <= last).toBe(false)
})
