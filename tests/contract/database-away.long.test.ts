/** What callers get while the database does not answer. Source: docs/cluster.md, "When the database is away". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ANSWER_WITHIN_MS } from '../../control/log/postgres/unavailable.ts'
import type { Control } from '../support/control.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { cluster } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip

/** Longer than an answer takes that does not wait for the database, unless a busy machine stalls. */
const SOON_MS = 1_500

/** For how long a busy machine may stall. */
const STALL_MS = 8_000

/** Far from over during a test: nobody takes over, and heartbeats are rare. */
const LEASE = ['--lease', '10m']

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

withPostgres(`a database that does not answer${missing === undefined ? '' : ` (${missing})`}`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  /** The status of an answer, and the milliseconds that it took. */
  async function timed(asking: Promise<Response>): Promise<readonly [status: number, ms: number]> {
    const startedAt = performance.now()
    const { status } = await asking
    return [status, performance.now() - startedAt]
  }

  const isBack = (control: Control) => until(async () => (await control.fetch('/readyz')).status, 200)

  test.each([
    ['a submission', (control: Control) => control.post({ tasks: [noop('refused')] })],
    [
      'a submission with a key, which is looked up first',
      (control: Control) => control.post({ tasks: [noop('refused')] }, { 'idempotency-key': 'k' }),
    ],
    ['a cancel', (control: Control) => control.fetch('/tasks/held/cancel', { method: 'POST' })],
  ])('%s gets 503 within ANSWER_WITHIN_MS, and all that follow at once', async (_, ask) => {
    using each = await cluster([postgres])
    await using control = await each.replica(LEASE)
    await control.submit([{ id: 'held', type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } }])
    await control.reached('held', 'running')
    postgres.freeze()
    try {
      const [status, ms] = await timed(ask(control))
      expect(status).toBe(503)
      expect(ms).toBeLessThan(ANSWER_WITHIN_MS + STALL_MS)
      await until(() => control.log.some(({ msg }) => msg === 'the database is away'))
      const other = () => control.post({ tasks: [noop('other')] }, { 'idempotency-key': 'other' })
      for (const again of [() => ask(control), other]) {
        const took = async () => {
          const [status, ms] = await timed(again())
          expect(status).toBe(503)
          return ms
        }
        await until(took, (ms) => ms < SOON_MS) // one that waits for the database takes longer each time
      }
    } finally {
      postgres.thaw()
    }
    await isBack(control)
    expect(await control.stop()).toBe(0)
  })

  test('a graph whose submission got 503 never runs, and its id and key are free', async () => {
    using each = await cluster([postgres])
    await using control = await each.replica(LEASE)
    await control.submit([noop('first')])
    await control.ended('first')
    const key = { 'idempotency-key': 'k' }
    const sent = control.post({ tasks: [noop('a')] }) // a turn is under way, perhaps, when the server stops
    postgres.freeze()
    const statuses = new Map([['a', (await sent).status]])
    statuses.set('b', (await control.post({ tasks: [noop('b')] }, key)).status)
    postgres.thaw()
    expect(statuses.get('b')).toBe(503)
    await isBack(control)
    await control.allEnded()
    await control.submit([noop('last')])
    const rows = await postgres.run('select count(*)::int as n from taskmill.graph', each.database)
    expect(rows).toEqual([{ n: 2 + (statuses.get('a') === 202 ? 1 : 0) }])
    if (statuses.get('a') === 503) await control.submit([noop('a')])
    expect((await control.post({ tasks: [noop('b')] }, key)).status).toBe(202)
    await control.allEnded()
    expect(await control.stop()).toBe(0)
  })
})
