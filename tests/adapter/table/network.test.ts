/** The connections of a task as text. */
import { expect, test } from 'bun:test'
import { networkTable } from '../../../adapter/table/network.ts'

const look = { paint: (_: string, text: string) => text, columns: Number.POSITIVE_INFINITY, nowMs: 5_000 }
const at = '1970-01-01T00:00:00.000Z'

test('shows verdict, host, bytes, rule and the reason of each connection, then the totals', () => {
  const lines = networkTable(
    {
      usage: { connections_allowed: 3, connections_refused: 1, bytes_sent: 10, bytes_received: 20 },
      ...{ open: 1, unlisted: 2 },
      connections: [
        {
          ...{ at, verdict: 'allowed', host: 'a.example', port: 443, rule: '*.example', message: 'words' },
          ...{ bytes_sent: 10, bytes_received: 20, duration_ms: 4 },
        },
        {
          at,
          verdict: 'refused',
          host: '::1',
          port: 80,
          reason: 'class',
          message: 'its \u001b[31maddress is loopback',
        },
      ],
    },
    look,
  )
  expect(lines[1]).toMatch(/^allowed +5s ago +a\.example:443 +10 +20 +4ms +\*\.example/)
  expect(lines[2]).toMatch(/^refused +5s ago +\[::1\]:80 .*its .*address is loopback$/)
  expect(lines.join()).not.toContain('\u001b')
  expect(lines.slice(3)).toEqual(['and 2 more', '3 allowed, 1 refused, 1 open, 10 bytes sent, 20 received'])
})

test('says that a task has no rules', () => {
  expect(networkTable({ open: 0, connections: [], unlisted: 0 }, look)[0]).toContain('no rules')
})
