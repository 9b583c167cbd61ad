/**
 * Goal: what a turn has kept is stored, whatever becomes of the server, and a server in trouble is not made worse. Method:
 * real servers, which are killed, frozen, replaced, and made to wait for a standby that is not there.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseDatabaseUrls } from '../../../../control/log/postgres/database-url.ts'
import { MAX_STRANDED, Servers } from '../../../../control/log/postgres/servers.ts'
import type { SharedRows } from '../../../../control/log/postgres/shared-rows.ts'
import { SCHEMA_VERSION } from '../../../../control/log/postgres/shared-schema.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { startCuttingLink } from '../../../support/cutting-link.ts'
import { freePort } from '../../../support/free-port.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { startPgBouncer } from '../../../support/pgbouncer.ts'
import { PASSWORD, type Postgres, startPostgres } from '../../../support/postgres.ts'
import { frame, graph, openRows, registeredRows, writes } from '../../../support/shared-rows.ts'
import { until } from '../../../support/until.ts'

const missing = mustPostgres()

const WHEN = ['before the request', 'before the answer'] as const

describe.skipIf(missing !== undefined)(
  `faults of servers${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    let postgres: Postgres
    beforeAll(async () => {
      postgres = await startPostgres()
    })
    afterAll(() => postgres[Symbol.asyncDispose]())

    const numbersIn = async (name: string, table: 'graph' | 'frame' | 'task_id', server = postgres) =>
      (
        await server.run(
          `select ${table === 'graph' ? 'ordinal' : 'graph'} as n from taskmill.${table} order by 1`,
          name,
        )
      ).map(({ n }) => Number(n))

    const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)

    /** Takes turns with a graph each until `end` was called, and tells the graphs that were kept. */
    function keepTaking(rows: SharedRows) {
      const kept: number[] = []
      let isOver = false
      const taking = (async () => {
        for (let i = 1; !isOver; i++) {
          await rows.turn(writes({ graphs: [graph(i, [`task-${i}`])], frames: [frame(i, 1)] }))
          kept.push(i)
        }
      })()
      taking.catch(() => {}) // a test that fails before its end has its own reason
      return {
        more: (count: number) => {
          const before = kept.length
          return until(
            () => kept.length,
            (length) => length >= before + count,
            { patienceMs: 60_000 },
          )
        },
        async end() {
          isOver = true
          await taking
          return kept
        },
      }
    }

    test('every text comes back', async () => {
      const name = await postgres.createDatabase()
      await using rows = await registeredRows([postgres.url(name)])
      const odd = fc.string({ unit: fc.constantFrom(...'"\'{},\\ \n\t$1é😀', 'NULL', 'null', '\\u0000') })
      let last = 0
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(odd, odd, odd), { maxLength: 5 }), async (texts) => {
          const first = last + 1
          const graphs = texts.map(([payload, , id]) => graph(++last, [`${last}:${id}`], `{${payload}`)) // none is empty
          const frames = texts.map(([, payload], i) => frame(first + i, 1, payload))
          await rows.turn(writes({ graphs, frames }))
          const found = await rows.adoptions.kept(texts.map((_, i) => first + i))
          expect(found.map((one) => [one.graph, one.frames, [...one.ownIds]])).toEqual(
            texts.map(([payload, framePayload, id], i) => [`{${payload}`, [framePayload], [`${first + i}:${id}`]]),
          )
        }),
        { numRuns: 30 },
      )
    })

    test.each(WHEN)('an id in use is told over a connection that is cut %s, and nothing is written', async (when) => {
      const name = await postgres.createDatabase()
      await using link = await startCuttingLink(postgres.port)
      await using rows = await registeredRows([link.through(postgres.url(name))])
      await rows.turn(writes({ graphs: [graph(1, ['a'])] }))
      link.cut(when)
      await expect(rows.turn(writes({ graphs: [graph(2, ['b', 'a'])], frames: [frame(2, 1)] }))).rejects.toThrow(
        /task_id/,
      )
      await rows.turn(writes({ graphs: [graph(3, ['b'])] }))
      expect(await numbersIn(name, 'graph')).toEqual([1, 3])
      expect(await numbersIn(name, 'frame')).toEqual([])
    })

    test('PgBouncer in transaction mode, with connections that are cut', async () => {
      const name = await postgres.createDatabase()
      await using pooler = await startPgBouncer(postgres, 'transaction')
      const url = pooler.url(name)
      await using link = await startCuttingLink(Number(new URL(url).port))
      await using rows = await registeredRows([`${link.through(url)}?prepare=false`])
      await using other = await registeredRows([`${url}?prepare=false`])
      for (const i of upTo(10)) {
        if (i % 3 === 0) link.cut(WHEN[i % 2]!)
        const [, late] = await Promise.all([rows.turn(writes({ graphs: [graph(i)] })), other.replicas.buryLate()])
        expect(late).toEqual([])
      }
      expect(await numbersIn(name, 'graph')).toEqual(upTo(10))
    })

    /** A replica whose database has little time for an answer, and how often it has tried in vain. */
    async function hastyRows(name: string) {
      const { log, texts } = memoryLog('debug')
      const rows = await registeredRows([postgres.url(name)], { answerMs: 500, log })
      return { rows, tries: () => texts.length }
    }

    test('a server that is frozen, and goes on', async () => {
      const name = await postgres.createDatabase()
      const { rows, tries } = await hastyRows(name)
      await using _ = rows
      await rows.turn(writes({ graphs: [graph(1)] }))
      postgres.freeze()
      let isKept = false
      const turn = rows.turn(writes({ graphs: [graph(2)] })).then(() => {
        isKept = true
      })
      await until(tries, (count) => count >= 3)
      expect(isKept).toBe(false)
      postgres.thaw()
      await turn
      await rows.turn(writes({ graphs: [graph(3)] }))
      expect(await numbersIn(name, 'graph')).toEqual([1, 2, 3])
    })

    test('a server that is killed again and again has all that was kept', async () => {
      const name = await postgres.createDatabase()
      await using rows = await registeredRows([postgres.url(name)])
      const turns = keepTaking(rows)
      for (let round = 0; round < 2; round++) {
        await turns.more(20)
        await postgres.kill()
        await postgres.start()
      }
      await turns.more(20)
      const kept = await turns.end()
      for (const table of ['graph', 'task_id', 'frame'] as const) expect(await numbersIn(name, table)).toEqual(kept)
    })

    test('a primary that is lost: turns go on at its synchronous standby, which has all that was kept', async () => {
      await using primary = await startPostgres({ standby: true })
      const standby = primary.standby!
      await using rows = await registeredRows([standby.url(), primary.url()], { answerMs: 5_000 })
      const turns = keepTaking(rows)
      await turns.more(20)
      await primary.kill()
      await standby.promote()
      await turns.more(20)
      const kept = await turns.end()
      expect(await numbersIn('postgres', 'graph', standby)).toEqual(kept)
    })

    test('commits that hang leave few connections at the server', async () => {
      const name = await postgres.createDatabase()
      const { rows } = await hastyRows(name)
      await using _ = rows
      await rows.turn(writes({ graphs: [graph(1)] }))
      await postgres.configure({ synchronous_standby_names: 'nobody' })
      const hanging = async () =>
        (
          await postgres.run(
            "select query_start, wait_event from pg_stat_activity where application_name like 'taskmill%' and state = 'active'",
            name,
          )
        ).map(({ query_start, wait_event }) => `${Number(query_start)} ${wait_event}`)
      let isKept = false
      const turn = rows.turn(writes({ graphs: [graph(2)] })).then(() => {
        isKept = true
      })
      const waiting = new Set<string>()
      let most = 0
      try {
        // The first try waits for the standby, each later one for the row that the first one locks.
        await until(
          async () => {
            const now = await hanging()
            most = Math.max(most, now.length)
            for (const one of now) if (!one.endsWith(' SyncRep')) waiting.add(one)
            return waiting.size
          },
          (tries) => tries >= 2 * MAX_STRANDED,
          { patienceMs: 60_000 },
        )
        expect(await hanging()).toContainEqual(expect.stringMatching(/ SyncRep$/))
        expect(isKept).toBe(false)
      } finally {
        await postgres.configure({ synchronous_standby_names: '' })
      }
      await turn
      expect(most).toBeLessThanOrEqual(MAX_STRANDED + 1) // one counts the others
      expect(await numbersIn(name, 'graph')).toEqual([1, 2])
    }, 120_000)

    test('a server where queries hang gets no further ones', async () => {
      const name = await postgres.createDatabase()
      await postgres.run('create table t (n int)', name)
      const urls = parseDatabaseUrls([postgres.url(name)], 'the test')
      const servers = new Servers({ urls, answerMs: 1_000, log: silentLog() })
      const write = () => servers.use(async (sql) => await sql`insert into t values (1)`)
      const count = async (event: string) =>
        (await postgres.run(`select from pg_stat_activity where wait_event = '${event}'`, name)).length
      const faultOf = async () =>
        await write().then(
          () => undefined,
          (error) => error,
        )
      await postgres.configure({ synchronous_standby_names: 'nobody' })
      try {
        const fault = await until(faultOf, (found) => {
          expect(found.kind).toBeOneOf(['silent', 'stranded'])
          return found.message.includes(`${MAX_STRANDED} earlier queries hang`)
        })
        expect(fault.kind).toBe('stranded')
        expect(await count('SyncRep')).toBe(MAX_STRANDED)
        expect(await faultOf()).toMatchObject({ kind: 'stranded' })
        expect(await count('SyncRep')).toBe(MAX_STRANDED)
      } finally {
        await postgres.configure({ synchronous_standby_names: '' })
      }
      await until(
        () => count('SyncRep'),
        (left) => left === 0,
      )
      await until(faultOf, (found) => found === undefined) // the pool of a busy machine may need another try
      await servers.close()
      await expect(write()).rejects.toThrow('the connections are closed')
    })

    test('queries go to the first server that takes writes; without any, the fault says most', async () => {
      const closed = `postgres://postgres:x@127.0.0.1:${await freePort()}/postgres`
      const wrong = postgres.url().replace('postgres:pw', 'nobody:pw')
      const opened = (...texts: string[]) =>
        new Servers({ urls: parseDatabaseUrls(texts, 'the test'), answerMs: 20_000, log: silentLog() })
      const answer = (servers: Servers) => servers.use(async (sql) => [...(await sql`select 1 as one`)])
      const three = opened(closed, wrong, postgres.url())
      expect(await Promise.all([answer(three), answer(three)])).toEqual([[{ one: 1 }], [{ one: 1 }]])
      const two = opened(closed, wrong)
      await expect(answer(two)).rejects.toMatchObject({ kind: 'wrong-password' })
      const one = opened(closed)
      await expect(answer(one)).rejects.toMatchObject({ kind: 'away' })
      for (const servers of [three, two, one]) await servers.close()
    })

    test('a turn and a takeover at the same moment: either the turn is kept, or the replica is fenced', async () => {
      const name = await postgres.createDatabase()
      for (const i of upTo(20)) {
        await using late = await registeredRows([postgres.url(name)])
        await using next = await registeredRows([postgres.url(name)])
        await postgres.run(
          `update taskmill.replica set lease_until = now() - interval '1 ms' where id = ${late.replicas.id}`,
          name,
        )
        const [fault, buried] = await Promise.all([
          late.turn(writes({ graphs: [graph(i)] })).then(
            () => undefined,
            (error) => error,
          ),
          next.replicas.buryLate(),
        ])
        expect((await numbersIn(name, 'graph')).includes(i)).toBe(fault === undefined)
        if (fault === undefined) expect(buried).toEqual([])
        else expect([fault.name, buried]).toEqual(['Fenced', [late.replicas.id]])
      }
    })

    test('the schema is used by one who may not create others', async () => {
      const name = await postgres.createDatabase()
      await postgres.run(
        [`create role maker login password '${PASSWORD}'`, 'create schema taskmill authorization maker'],
        name,
      )
      const url = `postgres://maker:${PASSWORD}@127.0.0.1:${postgres.port}/${name}`
      for (let i = 0; i < 2; i++) await (await openRows([url])).close()
    })

    test('a newer schema is refused in one line, and stays as it is', async () => {
      const name = await postgres.createDatabase()
      await (await openRows([postgres.url(name)])).close()
      await postgres.run('update taskmill.schema_version set version = version + 1', name)
      await expect(openRows([postgres.url(name)])).rejects.toThrow(
        `the database has version ${SCHEMA_VERSION + 1} of the schema taskmill, and this program knows ${SCHEMA_VERSION}: install a newer taskmill-control`,
      )
      expect(await postgres.run('select version from taskmill.schema_version', name)).toEqual([
        { version: SCHEMA_VERSION + 1 },
      ])
    })
  },
)
