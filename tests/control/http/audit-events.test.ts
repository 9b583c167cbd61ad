/** The stream of the audit log, over records that a test makes up. Source: docs/security.md. */
import { expect, test } from 'bun:test'
import { followAudit, MAX_FOLLOWED_RECORDS, MAX_UNTOLD_MS, placeOf } from '../../../control/http/audit-events.ts'
import { EventStream, KeepAlive } from '../../../control/http/event-stream.ts'
import { AuditIds } from '../../../control/log/audit-log.ts'
import type { AuditRecord } from '../../../shared/contract/audit.ts'
import { until } from '../../support/until.ts'

const ids = new AuditIds()
const made = (agoMs: number, more: Partial<AuditRecord> = {}): AuditRecord => {
  const ms = Date.now() - agoMs
  return {
    ...{ id: ids.next(ms), time: new Date(ms).toISOString(), door: 'http', what: 'POST /tasks', trace_id: 't' },
    ...more,
  }
}

/** Follows `records`, which may grow. */
function follow(records: AuditRecord[], { hasMore = false, fails = (): boolean => false } = {}) {
  const left = new AbortController()
  const limits: number[] = []
  const audit = {
    read: async ({ since, limit }: { since: number; limit: number }) => {
      limits.push(limit)
      if (fails()) throw new Error('the database is away')
      const found = records.filter(({ time }) => Date.parse(time) >= since)
      return { records: found.toReversed(), hasMore }
    },
  }
  const client = new EventStream(new KeepAlive(60_000), 1_000)
  const seen = { text: '', hasEnded: false, limits }
  void new Response(client.body).body!.pipeTo(
    new WritableStream({
      write: (bytes) => {
        seen.text += new TextDecoder().decode(bytes)
      },
    }),
  )
  void followAudit({ audit, client, sinceMs: 0, signal: left.signal }).then(() => {
    seen.hasEnded = true
    client.end()
  })
  return { seen, [Symbol.dispose]: () => left.abort() }
}

const told = (text: string): string[] => [...text.matchAll(/^data: \{"id":"([^"]+)"/gm)].map(([, id]) => id!)

test('a record is told once, when its request is answered, or after MAX_UNTOLD_MS', async () => {
  const open = made(0)
  const [old, answered] = [made(MAX_UNTOLD_MS), made(0, { status: 202 })]
  const records = [old, answered, open]
  using following = follow(records)
  const { seen } = following
  await until(
    () => seen.text,
    (text) => text.includes(answered.id),
  )
  expect(told(seen.text)).toEqual([old.id, answered.id])
  records[2] = { ...open, status: 403 }
  const text = await until(
    () => seen.text,
    (all) => all.includes(open.id),
  )
  expect(told(text)).toEqual([old.id, answered.id, open.id])
  expect(text).toContain(`id: ${open.id}\nevent: request\ndata: ${JSON.stringify(records[2])}\n\n`)
})

test('what comes while the log cannot be read is told later', async () => {
  let isAway = true
  using following = follow([made(0, { status: 200 })], { fails: () => isAway })
  const { seen } = following
  await until(
    () => seen.limits,
    ({ length }) => length > 0,
  )
  isAway = false
  await until(
    () => told(seen.text),
    ({ length }) => length === 1,
  )
})

test('a stream that has missed more than MAX_FOLLOWED_RECORDS says so and ends', async () => {
  using following = follow([made(0, { status: 200 })], { hasMore: true })
  const { seen } = following
  await until(
    () => seen,
    ({ hasEnded, text }) => hasEnded && text.includes('lagging'),
  )
  expect([seen.limits, told(seen.text)]).toEqual([[MAX_FOLLOWED_RECORDS], []])
})

test('a stream resumes some time before a record, and after nothing else', () => {
  const { id, time } = made(0)
  expect(placeOf(id)).toBe(Date.parse(time) - 2 * MAX_UNTOLD_MS)
  for (const none of ['', '7', `${id} `, id.toUpperCase(), `-${id}`])
    expect(() => placeOf(none)).toThrow('invalid Last-Event-ID')
})
