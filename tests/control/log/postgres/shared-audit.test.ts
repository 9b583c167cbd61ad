/**
 * Goal: the records of all replicas are one log, in order, there before requests act, bounded, and no reason to refuse a request.
 * Method: real rows of two replicas; the table is taken away for a while.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { MAX_WAITING_AUDIT_RECORDS, SharedAudit } from '../../../../control/log/postgres/shared-audit.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'
import { registeredRows } from '../../../support/shared-rows.ts'
import { until } from '../../../support/until.ts'

type Rows = Awaited<ReturnType<typeof registeredRows>>

const missing = mustPostgres()
const ALL = { since: 0, before: undefined, limit: 1_000 }
const asked = (target: string) => ({ door: 'http', what: 'POST /tasks', target, trace_id: 't' }) as const

describe.skipIf(missing !== undefined)(
  `the audit log of replicas${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let postgres: Postgres
    let database: string
    let rows: [Rows, Rows]
    let memory: ReturnType<typeof memoryLog>
    const auditOf = ({ database, replicas: replica }: Rows, maxRecords?: number) =>
      new SharedAudit({ database, replica, log: memory.log, ...(maxRecords !== undefined && { maxRecords }) })
    const run = (statement: string) => postgres.run(statement, database)
    const targets = async (audit: SharedAudit, page: Partial<typeof ALL> = {}) =>
      (await audit.read({ ...ALL, ...page })).records.map(({ target, status }) => [target, status])

    beforeAll(async () => {
      postgres = await startPostgres()
      database = await postgres.createDatabase()
      const url = postgres.url(database)
      rows = [await registeredRows([url]), await registeredRows([url])]
    })
    beforeEach(async () => {
      memory = memoryLog()
      await run('truncate taskmill.audit')
    })
    afterAll(async () => {
      for (const each of rows) await each[Symbol.asyncDispose]()
      await postgres[Symbol.asyncDispose]()
    })

    test('a record is there before its request acts, and every replica shows what became of it', async () => {
      const [a, b] = [auditOf(rows[0]), auditOf(rows[1])]
      const id = a.begin(asked('/a'))
      await a.written()
      expect(await targets(b)).toEqual([['/a', undefined]])
      a.end(id, { status: 202, graph_id: 'g' })
      b.end(b.begin(asked('/b \0 \ud800')), { status: 403 })
      await Promise.all([a.written(), b.written()])
      for (const audit of [a, b]) {
        const { records } = await audit.read(ALL)
        expect(records).toEqual([
          expect.objectContaining({ target: '/b \0 \ud800', status: 403, replica: rows[1].replicas.id }),
          expect.objectContaining({ target: '/a', status: 202, graph_id: 'g', replica: rows[0].replicas.id }),
        ])
      }
      const [first] = (await a.read(ALL)).records
      expect(await targets(a, { since: Date.parse(first!.time) + 60_000 })).toEqual([])
    })

    test('pages continue over the records of all replicas', async () => {
      const audits = rows.map((each) => auditOf(each))
      for (let i = 0; i < 50; i++) audits[i % 2]!.end(audits[i % 2]!.begin(asked(`/${i}`)), { status: 200 })
      await Promise.all(audits.map((audit) => audit.written()))
      const whole = await targets(audits[0]!)
      expect(whole).toHaveLength(50)
      const paged: unknown[] = []
      for (let before: string | undefined, hasMore = true; hasMore; ) {
        const page = await audits[1]!.read({ since: 0, before, limit: 7 })
        paged.push(...page.records.map(({ target, status }) => [target, status]))
        before = page.records.at(-1)?.id
        hasMore = page.hasMore
      }
      expect(paged).toEqual(whole)
    })

    test('a database that takes no records loses these, and the next one counts them', async () => {
      const audit = auditOf(rows[0])
      await run('alter table taskmill.audit rename to away')
      audit.begin(asked('/lost'))
      await audit.written()
      audit.begin(asked('/lost too'))
      await audit.written() // at once
      await expect(audit.read(ALL)).rejects.toMatchObject({ status: 503 })
      await run('alter table taskmill.away rename to audit')
      await until(() => {
        audit.begin(asked('/kept'))
        return memory.lines().some(({ msg }) => msg === 'the audit log can be written again')
      })
      expect(memory.lines().filter(({ msg }) => msg === 'the audit log cannot be written')).toHaveLength(1)
      const { records } = await audit.read(ALL)
      expect(records.every(({ target }) => target === '/kept')).toBe(true)
      expect(records.at(-1)!.lost).toBeGreaterThanOrEqual(2)
      expect(records.filter(({ lost }) => lost !== undefined)).toHaveLength(1)
    })

    test('the newest records are kept, up to a number', async () => {
      const audit = auditOf(rows[0], 10)
      for (let i = 0; i < 30; i++) {
        audit.begin(asked(`/${i}`))
        await audit.written()
      }
      await until(
        () => targets(audit),
        (kept) => kept.length === 10,
      )
      expect((await targets(audit)).map(([target]) => target)).toEqual(
        Array.from({ length: 10 }, (_, i) => `/${29 - i}`),
      )
    })

    test('what comes while too many records wait is counted', async () => {
      const audit = auditOf(rows[0])
      for (let i = 0; i < MAX_WAITING_AUDIT_RECORDS + 5; i++) audit.begin(asked(`/${i}`))
      await audit.close()
      const [{ count }] = (await run('select count(*)::int as count from taskmill.audit')) as [{ count: number }]
      expect(count).toBe(MAX_WAITING_AUDIT_RECORDS)
      const [first] = (await run(`select record from taskmill.audit where record like '%"lost":5%'`)) as {
        record: string
      }[]
      expect(JSON.parse(first!.record)).toMatchObject({ target: '/0', lost: 5 })
    })
  },
)
