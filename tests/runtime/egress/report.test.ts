/** What callers see of the connections of a task. */
import { expect, test } from 'bun:test'
import { networkEvent, type Report, taskNetwork } from '../../../runtime/egress/report.ts'
import { parseIp } from '../../../shared/egress/ip-address.ts'

const target = { host: { name: 'a.example' }, port: 443 }
const allowed: Report = {
  ...{ verdict: 'allowed', target, protocol: 'connect', rule: '*.example', address: '192.0.2.1' },
  ...{ bytesSent: 1, bytesReceived: 2, durationMs: 3.4 },
}
const refused: Report = { verdict: 'refused', refusal: { kind: 'unlisted' }, target }
const event = (report: Report) => ({ ...networkEvent(report), timestamp: 0 })
const usage = { connections_allowed: 5, connections_refused: 2, bytes_sent: 9, bytes_received: 9 }

test('has each connection that has an event, in order, and counts the others', () => {
  const other = { event_type: 'started', message: 'the task has started', data: {}, timestamp: 0 }
  const failed = event({ ...allowed, address: undefined, failure: 'the name has no address' })
  const found = taskNetwork(usage, 1, [other, event(allowed), event(refused), failed])
  expect(found).toMatchObject({ usage, open: 1, unlisted: 4 })
  expect(found.connections).toEqual([
    {
      ...{ at: '1970-01-01T00:00:00.000Z', verdict: 'allowed', host: 'a.example', port: 443, address: '192.0.2.1' },
      ...{ rule: '*.example', bytes_sent: 1, bytes_received: 2, duration_ms: 3, message: expect.any(String) },
    },
    {
      ...{ at: '1970-01-01T00:00:00.000Z', verdict: 'refused', host: 'a.example', port: 443, reason: 'unlisted' },
      message: expect.stringContaining('is refused'),
    },
    expect.objectContaining({ verdict: 'failed', message: expect.stringContaining('the name has no address') }),
  ])
})

test('says why a connection was cut, and names an IPv6 address as such', () => {
  const cut = event({ ...allowed, target: { host: { address: parseIp('::1')! }, port: 1 }, cut: { kind: 'max_bytes' } })
  expect(taskNetwork(usage, 0, [cut]).connections).toEqual([
    expect.objectContaining({ verdict: 'allowed', host: '::1', reason: 'max_bytes' }),
  ])
})

test('has nothing for a task without rules', () => {
  expect(taskNetwork(undefined, 0, [])).toEqual({ open: 0, connections: [], unlisted: 0 })
})
