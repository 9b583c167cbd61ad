/** What a task has used of its network, as the next service finds it. */
import { expect, test } from 'bun:test'
import { statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { NetworkUse } from '../../../runtime/egress/network-use.ts'
import type { NetworkEvent, Report } from '../../../runtime/egress/report.ts'
import { MAX_NOTED_CONNECTIONS, UseFile } from '../../../runtime/egress/use-file.ts'
import { tempDir } from '../../support/temp.ts'

const fail = (error: unknown) => {
  throw error
}
const connection = (port = 443) =>
  ({ host: 'a.example', port, protocol: 'connect', rule: '*', address: '192.0.2.1' }) as const
const ended: Report = {
  ...{ verdict: 'allowed', target: { host: { name: 'a.example' }, port: 443 }, protocol: 'connect', rule: '*' },
  ...{ address: '192.0.2.1', bytesSent: 1, bytesReceived: 2, durationMs: 3 },
}

/** The use of a task, as each service has it that finds the file; nothing closes the one before, as in a crash. */
function opened(path: string) {
  const events: NetworkEvent[] = []
  const file = new UseFile(path, fail)
  return {
    events,
    file,
    use: new NetworkUse({ file, earlier: [], onReport: () => {}, onEvent: (event) => events.push(event) }),
  }
}

test('goes on after a crash: counts, bytes, and what was open is told as cut', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'use')
  const first = opened(path)
  expect(first.file.found).toBeUndefined()
  first.use.opened(connection())(ended)
  first.use.opened(connection(1))
  first.use.report({ verdict: 'refused', refusal: { kind: 'unlisted' } })
  first.use.spend(10, 20)
  first.use.spend(1, 2)
  await setImmediate()
  const second = opened(path)
  expect(second.use.usage).toEqual({
    ...{ connections_allowed: 2, connections_refused: 1, bytes_sent: 11, bytes_received: 22 },
  })
  expect([second.use.bytes, second.use.open]).toEqual([33, 0])
  expect(second.events).toEqual([
    {
      event_type: 'network_allowed',
      message: 'the connection to a.example:1 is allowed: cut, as the service was restarted',
      data: { ...connection(1), cut: 'restart' },
    },
  ])
  const third = opened(path) // killed before anything happened
  expect(third.use.usage).toEqual(second.use.usage)
  expect(third.events).toEqual([])
  for (const { file } of [first, second, third]) file.close()
})

test('keeps a bounded number of open connections, in places that are used again', () => {
  using dir = tempDir()
  const path = join(dir.path, 'use')
  const { use, file } = opened(path)
  const ends = Array.from({ length: MAX_NOTED_CONNECTIONS + 2 }, (_, i) => use.opened(connection(i + 1)))
  const { size } = statSync(path)
  ends[3]!(ended)
  use.opened(connection(9_999))
  expect(statSync(path).size).toBe(size)
  const next = opened(path)
  expect(next.use.usage.connections_allowed).toBe(MAX_NOTED_CONNECTIONS + 3)
  const ports = next.events.map(({ data }) => data.port)
  expect(ports).toHaveLength(MAX_NOTED_CONNECTIONS + 1)
  expect(ports).toContain(9_999)
  expect(next.events.at(-1)!.event_type).toBe('network_unlisted')
  for (const one of [file, next.file]) one.close()
})

test.each([
  ['nothing', ''],
  ['text', 'no numbers, but long enough to have some of them in it'],
  ['another format', Buffer.from(Float64Array.of(2, 1, 1, 1, 1, 1).buffer)],
  ['no counts', Buffer.from(Float64Array.of(1, -1, Number.NaN, 0.5, 1, 1).buffer)],
])('a file with %s is a new one', (_, content) => {
  using dir = tempDir()
  const path = join(dir.path, 'use')
  writeFileSync(path, content)
  const { use, file } = opened(path)
  expect(file.found).toBeUndefined()
  expect(use.usage.connections_allowed).toBe(0)
  file.close()
})

test('a place that is torn is left out', () => {
  using dir = tempDir()
  const path = join(dir.path, 'use')
  const first = opened(path)
  first.use.opened(connection())
  truncateSync(path, 1_024 + 10)
  const { use, events, file } = opened(path)
  expect(use.usage.connections_allowed).toBe(1)
  expect(events.map(({ event_type }) => event_type)).toEqual(['network_unlisted'])
  for (const one of [first.file, file]) one.close()
})

test('without a file the totals are those of the events', () => {
  using dir = tempDir()
  const told: NetworkEvent = { event_type: 'network_allowed', message: '', data: { bytes_sent: 3, bytes_received: 4 } }
  const file = new UseFile(join(dir.path, 'use'), fail)
  const use = new NetworkUse({ file, earlier: [told], onReport: () => {}, onEvent: () => {} })
  expect(use.usage).toEqual({ connections_allowed: 1, connections_refused: 0, bytes_sent: 3, bytes_received: 4 })
  file.close()
})

test('a file that cannot be written is told once, and the counts go on', () => {
  const faults: unknown[] = []
  const file = new UseFile('/dev/full', (error) => faults.push(error))
  const use = new NetworkUse({ file, earlier: [], onReport: () => {}, onEvent: () => {} })
  use.opened(connection())(ended)
  use.report({ verdict: 'refused', refusal: { kind: 'unlisted' } })
  expect(faults).toEqual([expect.objectContaining({ code: 'ENOSPC' })])
  expect(use.usage).toMatchObject({ connections_allowed: 1, connections_refused: 1 })
})
