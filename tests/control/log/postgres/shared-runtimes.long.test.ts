/**
 * Goal: each change of the pool of runtime services is made once, and none is lost, whatever is cut and whoever changes
 * something meanwhile. Method: the rows on a real database, through a link that cuts connections.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import type { SharedRows } from '../../../../control/log/postgres/shared-rows.ts'
import { SharedPool } from '../../../../control/log/postgres/shared-runtimes.ts'
import { type PoolState, withAdded, withDrained, withRemoved } from '../../../../control/rules/pool-state.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { startCuttingLink } from '../../../support/cutting-link.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'
import { openRows } from '../../../support/shared-rows.ts'
import { until } from '../../../support/until.ts'

const DRAIN = { since: 1, by: 'ops', why: 'a fan' }

const missing = mustPostgres()
const flags = { configured: [] }
const entry = (name: string) => ({ name, url: `http://${name}:1`, labels: { zone: name } })
const adding = (name: string) => (state: PoolState) => withAdded(flags, state, entry(name), 0)
const losing = (name: string) => (state: PoolState) => withRemoved(flags, state, name, { isLost: true, attempts: 0 })

describe.skipIf(missing !== undefined)(
  `the pool in rows${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    let postgres: Postgres
    beforeAll(async () => {
      postgres = await startPostgres()
    })
    afterAll(() => postgres[Symbol.asyncDispose]())

    /** Without the time limit of callers. */
    const poolOn = ({ database }: SharedRows) =>
      new SharedPool({ settings: database.settings, soon: (work) => database.repeat(work) }, silentLog())

    test('has what was written, and a look reads what another one changed', async () => {
      const url = postgres.url(await postgres.createDatabase())
      await using one = await openRows([url])
      await using two = await openRows([url])
      const [first, second] = [poolOn(one), poolOn(two)]
      for (const name of ['a', 'b', 'c']) await first.change(adding(name))
      await first.change((state) => withDrained(flags, state, 'b', DRAIN))
      await first.change(losing('a'))
      await first.change(adding('a'))
      await second.look()
      expect(second.state).toEqual(first.state)
      expect(second.state).toEqual({
        ...{
          added: ['b', 'c', 'a'].map((name) => ({ ...entry(name), token: '' })),
          draining: new Map([['b', DRAIN]]),
          removed: [],
          losses: new Map([['a', 1]]),
        },
      })
      let changes = 0
      second.onChange = () => changes++
      await second.look()
      expect(changes).toBe(0)
    })

    test.each(['before the request', 'before the commit', 'around the commit', 'before the answer'] as const)(
      'a change whose connection is cut %s is made once',
      async (when) => {
        const name = await postgres.createDatabase()
        await using link = await startCuttingLink(postgres.port)
        await using cut = await openRows([link.through(postgres.url(name))])
        await using other = await openRows([postgres.url(name)])
        const [first, second] = [poolOn(cut), poolOn(other)]
        for (let count = 1; count <= 4; count++) {
          await first.change(adding('a'))
          link.cut(when)
          await first.change(losing('a'))
          await second.look()
          expect(second.state).toMatchObject({ added: [], losses: new Map([['a', count]]) })
        }
      },
    )

    test('a change rings the others, and what changes nothing does not', async () => {
      const url = postgres.url(await postgres.createDatabase())
      await using rows = await openRows([url])
      const pool = poolOn(rows)
      await using sql = new SQL(url)
      const rings: string[] = []
      await sql.listen('taskmill', (payload) => rings.push(payload))
      for (let again = 0; again < 3; again++) await pool.change(adding('a'))
      await sql`select pg_notify('taskmill', 'end')`
      await until(
        () => rings,
        (heard) => heard.includes('end'),
      )
      expect(rings).toEqual(['', 'end'])
    })

    test('changes of many at the same time are all made', async () => {
      const url = postgres.url(await postgres.createDatabase())
      await using one = await openRows([url])
      await using two = await openRows([url])
      const pools = [poolOn(one), poolOn(two)]
      const names = Array.from({ length: 40 }, (_, i) => `r${i}`)
      await Promise.all(names.map((name, i) => pools[i % 2]!.change(adding(name))))
      for (const pool of pools) {
        await pool.look()
        expect(pool.state.added.map(({ name }) => name).sort()).toEqual(names.toSorted())
      }
    })
  },
)
