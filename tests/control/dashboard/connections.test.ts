/** Connections of a task in words, as the page shows them. */
import { expect, test } from 'bun:test'
import { targetOf, totalsText, whyOf } from '../../../control/dashboard/model/connections.ts'

const connection = { at: '2026-01-01T00:00:00.000Z', verdict: 'allowed', message: 'words' } as const
const usage = { connections_allowed: 1_200, connections_refused: 1, bytes_sent: 5, bytes_received: 3_145_728 }

test.each([
  [{}, ''],
  [{ host: 'a.example', port: 443 }, 'a.example:443'],
  [{ host: '::1', port: 80 }, '[::1]:80'],
])('the target of %j is %s', (named, text) => {
  expect(targetOf({ ...connection, ...named })).toBe(text)
})

test('why is said of connections that were refused, failed or were cut', () => {
  expect(whyOf(connection)).toBeUndefined()
  expect(whyOf({ ...connection, reason: 'max_bytes' })).toBe('words')
  expect(whyOf({ ...connection, verdict: 'failed' })).toBe('words')
  expect(whyOf({ ...connection, verdict: 'refused' })).toBe('words')
})

test('totals are in units that people read', () => {
  const none = { open: 0, connections: [], unlisted: 0 }
  expect(totalsText(none)).toBe('')
  expect(totalsText({ ...none, usage })).toBe('1,200 allowed, 1 refused, 5 B sent, 3 MiB received')
  expect(totalsText({ ...none, usage, open: 2 })).toContain(', 2 open, ')
})
