/**
 * Goal: a turn is written once, whatever becomes of its connection, and never by a replica that has lost the lease.
 * Method: a real server behind a link that is cut before a request arrives, or before its answer does.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Socket } from 'bun'
import { PORTION } from '../../../../control/log/postgres/adoption-rows.ts'
import { InUse } from '../../../../control/log/postgres/database.ts'
import { parseDatabaseUrls } from '../../../../control/log/postgres/database-url.ts'
import { PastEvents } from '../../../../control/log/postgres/past-events.ts'
import { Fenced, SharedRows } from '../../../../control/log/postgres/shared-rows.ts'
import { SCHEMA_VERSION } from '../../../../control/log/postgres/shared-schema.ts'
import type { TurnWrites } from '../../../../control/log/postgres/turn-writes.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { lockedRows } from '../../../support/locked-rows.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip

const nothing: TurnWrites = {
  graphs: [],
  frames: [],
  removed: [],
  freedIds: [],
  freedKeys: [],
  resultUses: [],
  orphans: [],
  callbacks: [],
  removals: [],
  revived: [],
}
const graphOf = (ordinal: number, taskIds: readonly string[]) => ({
  ...{ ordinal, id: `graph-${ordinal}`, payload: `{"n":${ordinal}}`, taskIds, key: undefined },
})
const frameOf = (ordinal: number, number: number) => ({
  ...{ ordinal, number, payload: `[${number}]`, ends: false },
  ...{ seq: number, changes: 1 },
})

/** A link to the server that cuts all connections once a request holds `text`: before it arrives, or before its answer. */
function cuttingLink(port: number) {
  let cut: { readonly text: string; readonly when: 'before' | 'after' } | undefined
  let cuts = 0
  interface Ends {
    server?: Socket<Ends>
    early: Buffer[]
    isCut: boolean
  }
  const link = Bun.listen<Ends>({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: {
      async open(caller) {
        caller.data = { early: [], isCut: false }
        const server = await Bun.connect<Ends>({
          ...{ hostname: '127.0.0.1', port },
          socket: {
            open(socket) {
              socket.data = caller.data
            },
            data(_, bytes) {
              if (caller.data.isCut)
                caller.end() // the server has committed, and nobody hears it
              else caller.write(bytes)
            },
            close: () => void caller.end(),
          },
        })
        for (const bytes of caller.data.early) server.write(bytes)
        caller.data.server = server
      },
      data(caller, bytes) {
        if (cut !== undefined && bytes.includes(cut.text)) {
          const { when } = cut
          cut = undefined
          cuts++
          if (when === 'before') {
            caller.end()
            caller.data.server?.end()
            return
          }
          caller.data.isCut = true
        }
        if (caller.data.server === undefined) caller.data.early.push(Buffer.from(bytes))
        else caller.data.server.write(bytes)
      },
      close: (caller) => void caller.data.server?.end(),
    },
  })
  return {
    port: link.port,
    get cuts() {
      return cuts
    },
    cutOnce(text: string, when: 'before' | 'after') {
      cut = { text, when }
    },
    [Symbol.dispose]: () => link.stop(true),
  }
}

withPostgres(missing === undefined ? 'turns' : `turns (${missing})`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  async function replica(database: string, port = postgres.port, leaseMs = 10_000) {
    const urls = parseDatabaseUrls([postgres.url(database).replace(`:${postgres.port}/`, `:${port}/`)], 'test')
    const rows = new SharedRows({ urls, leaseMs, answerMs: 3_000, log: silentLog() })
    await rows.open(30_000)
    expect(await rows.replicas.register(true)).toBeUndefined()
    return Object.assign(rows, { [Symbol.asyncDispose]: () => rows.close() })
  }

  test.each(['before', 'after'] as const)('survive a connection that is cut %s they arrive', async (when) => {
    const database = await postgres.createDatabase()
    using link = cuttingLink(postgres.port)
    await using rows = await replica(database, link.port)
    for (let i = 1; i <= 5; i++) {
      link.cutOnce(`graph-${i}`, when)
      await rows.turn({ ...nothing, graphs: [graphOf(i, [`t${i}`])], frames: [frameOf(i, i)] })
    }
    expect(link.cuts).toBe(5)
    const kept = await rows.adoptions.kept([1, 2, 3, 4, 5])
    expect(kept.map(({ ordinal, frames }) => [ordinal, frames])).toEqual([1, 2, 3, 4, 5].map((i) => [i, [`[${i}]`]]))
    expect(await postgres.run('select turn::int as turn from taskmill.replica', database)).toEqual([{ turn: 5 }])
  })

  test('write nothing if an id is in use, and are taken again', async () => {
    await using rows = await replica(await postgres.createDatabase())
    await rows.turn({ ...nothing, graphs: [graphOf(1, ['a', 'b'])] })
    const refused = { ...nothing, graphs: [graphOf(2, ['c', 'b'])], frames: [frameOf(1, 1)] }
    await expect(rows.turn(refused)).rejects.toThrow(InUse)
    expect((await rows.adoptions.kept([1, 2, 3, 4, 5])).map(({ ordinal, frames }) => [ordinal, frames])).toEqual([
      [1, []],
    ])
    await rows.turn({ ...nothing, freedIds: [[1, 'b']] })
    await rows.turn(refused)
    const kept = await rows.adoptions.kept([1, 2, 3, 4, 5])
    expect(kept.map(({ ordinal, ownIds }) => [ordinal, [...ownIds].sort()])).toEqual([
      [1, ['a']],
      [2, ['b', 'c']],
    ])
  })

  test('keep ids as they are, whatever they look like', async () => {
    const ids = ['', 'NULL', '{}', '"', '\\', ',', "'", '😀', '__proto__', 'a\nb', ' ']
    await using rows = await replica(await postgres.createDatabase())
    await rows.turn({ ...nothing, graphs: [graphOf(1, ids)] })
    const [graph] = await rows.adoptions.kept([1])
    expect([...graph!.ownIds].sort()).toEqual(ids.toSorted())
    await rows.turn({ ...nothing, freedIds: ids.slice(1).map((id) => [1, id] as const) })
    expect([...(await rows.adoptions.kept([1]))[0]!.ownIds]).toEqual([''])
  })

  test('keep payloads and keys as they are, whatever they look like', async () => {
    const texts = ['{"a":"\\u0000\\ud800 \\" \\\\ é😀\\n"}', '[\n\t{} ,"\u2028\x7f"]', '[1e400,"}{\\"]', 'null']
    await using rows = await replica(await postgres.createDatabase())
    for (const [i, payload] of texts.entries()) {
      const key = { scope: 'a "scope"', key: `key ${i} \ud800 '"\\`, hash: 'h', answer: payload, at: 5 }
      const frames = [{ ...frameOf(i, 1), payload, seq: 2 ** 53 - 1, ends: true, endedAt: 5, tasks: 1 }]
      await rows.turn({ ...nothing, graphs: [{ ...graphOf(i, []), payload, key }], frames })
      expect(await rows.adoptions.kept([i])).toMatchObject([{ graph: payload, frames: [payload], hasEnded: true }])
      expect(await rows.answer(key)).toEqual({ ...key, graphId: `graph-${i}` })
      await rows.turn({ ...nothing, removed: [i], freedKeys: [key] })
      expect([await rows.adoptions.kept([i]), await rows.answer(key)]).toEqual([[], undefined])
    }
  })

  test('remove all of a graph', async () => {
    const database = await postgres.createDatabase()
    await using rows = await replica(database)
    const key = { scope: 'tasks', key: 'k', hash: 'h', answer: '{}', at: 5 }
    await rows.turn({ ...nothing, graphs: [{ ...graphOf(1, ['a']), key }, graphOf(2, ['b'])], frames: [frameOf(1, 1)] })
    await rows.keepResult('1-0-1-00000000.json', 1, '"large"')
    await rows.turn({ ...nothing, removed: [1] })
    const counts = ['graph', 'task_id', 'frame', 'result', 'answer'].map(async (table) => [
      ...[table, (await postgres.run(`select count(*)::int as n from taskmill.${table}`, database))[0]!.n],
    ])
    expect(Object.fromEntries(await Promise.all(counts))).toEqual({
      graph: 1,
      task_id: 1,
      frame: 0,
      result: 0,
      answer: 1,
    })
    expect(await rows.answer({ scope: 'tasks', key: 'k', hash: 'other' })).toEqual({ ...key, graphId: 'graph-1' })
    await rows.sweep(6)
    expect(await rows.answer({ scope: 'tasks', key: 'k', hash: 'h' })).toBeUndefined()
  })

  test('of a replica that was declared dead are refused', async () => {
    const database = await postgres.createDatabase()
    await using first = await replica(database)
    await first.turn({ ...nothing, graphs: [graphOf(1, ['a'])] })
    await using second = await replica(database)
    expect(await second.replicas.buryLate()).toEqual([]) // its lease is not over
    await postgres.run(`update taskmill.replica set lease_until = clock_timestamp() where id = 1`, database)
    expect(await second.replicas.buryLate()).toEqual([1])
    const late = { ...nothing, graphs: [graphOf(2, ['b'])], frames: [frameOf(1, 1)] }
    await expect(first.turn(late)).rejects.toThrow(Fenced)
    expect(await second.adoptions.adopt({ owner: 1, after: 0, isLive: true })).toMatchObject([{ ordinal: 1 }])
    await second.turn({ ...nothing, frames: [frameOf(1, 2)] })
    const kept = await second.adoptions.kept([1, 2])
    expect(kept.map(({ ordinal, frames }) => [ordinal, frames])).toEqual([[1, ['[2]']]])
  })

  test('are refused by a database that lost some: it went back to an earlier state', async () => {
    const database = await postgres.createDatabase()
    await using rows = await replica(database)
    await rows.turn(nothing)
    await rows.turn(nothing)
    await postgres.run('update taskmill.replica set turn = 1', database)
    await expect(rows.turn(nothing)).rejects.toThrow('it lost commits')
  })

  test('many replicas start together, and share the graphs of one that is gone', async () => {
    const database = await postgres.createDatabase()
    await using first = await replica(database)
    const ordinals = Array.from({ length: 1_000 }, (_, i) => i + 1)
    await first.turn({ ...nothing, graphs: ordinals.map((ordinal) => graphOf(ordinal, [])) })
    await first.turn({ ...nothing, frames: [{ ...frameOf(7, 1), ends: true }] })
    await first.replicas.release()
    const many = await Promise.all(Array.from({ length: 3 }, () => replica(database)))
    const adoptAll = async (rows: SharedRows, isLive: boolean) => {
      const all: number[] = []
      for (let after = 0; ; ) {
        const some = await rows.adoptions.adopt({ owner: 1, after, isLive })
        all.push(...some.map(({ ordinal }) => ordinal))
        if (some.length < PORTION) return all
        after = some.at(-1)!.ordinal
      }
    }
    expect(await many[0]!.adoptions.ownersGone()).toEqual([1])
    const live = (await Promise.all(many.map((rows) => adoptAll(rows, true)))).flat()
    const rest = await adoptAll(many[0]!, true) // rows that another one had locked
    expect([...live, ...rest].sort((a, b) => a - b)).toEqual(ordinals.filter((ordinal) => ordinal !== 7))
    expect(await adoptAll(many[1]!, false)).toEqual([7])
    expect(await many[0]!.adoptions.ownersGone()).toEqual([])
    for (const rows of many) await rows.close()
  })

  test('a session that has locked the row of one replica keeps no other one from being buried, or removed', async () => {
    const database = await postgres.createDatabase()
    await using me = await replica(database)
    const [locked, late] = [await replica(database), await replica(database)]
    await using _ = locked
    await using __ = late
    const ids = `(${locked.replicas.id}, ${late.replicas.id})`
    const makeLate = `update taskmill.replica set lease_until = clock_timestamp() - interval '2 days' where id in ${ids}`
    await postgres.run(makeLate, database)
    const lock = `select id from taskmill.replica where id = ${locked.replicas.id} for update`
    await using session = await lockedRows(postgres, database, lock)
    const left = async () => {
      const rows = await postgres.run(`select id::int from taskmill.replica where id in ${ids} order by id`, database)
      return rows.map(({ id }) => id)
    }
    expect(await me.replicas.buryLate()).toEqual([late.replicas.id])
    await me.replicas.sweep()
    expect(await left()).toEqual([locked.replicas.id])
    await session.end()
    expect(await me.replicas.buryLate()).toEqual([locked.replicas.id])
    await me.replicas.sweep()
    expect(await left()).toEqual([])
  })

  test('a session that has locked other rows holds up neither callbacks of gone replicas, nor any later query', async () => {
    const database = await postgres.createDatabase()
    await using me = await replica(database)
    for (const id of ['locked', 'free'])
      await postgres.run(
        `insert into taskmill.callback values ('${id}', 'gone', 99, '{"id":"${id}","graphId":"gone","event":"graph_ended","url":"http://x","body":"{}","since":1}')`,
        database,
      )
    await postgres.run(`insert into taskmill.callback values ('over', 'gone', 99)`, database)
    await postgres.run(`insert into taskmill.answer values ('tasks', 'k', 'h', '{}', 1)`, database)
    await postgres.run(`insert into taskmill.removal values (1, 'gone', 1), (2, 'gone', 1)`, database)
    const past = new PastEvents(me.database, () => [])
    const swept = () => Promise.all([me.sweep(2), past.sweep(1)].map((one) => one.catch(String)))
    const at = async (table: string, where: string) =>
      await lockedRows(postgres, database, `select from taskmill.${table} where ${where} for update`)
    {
      await using _ = await at('callback', `id in ('locked', 'over')`)
      await using __ = await at('removal', 'seq = 1')
      expect([...(await me.takeCallbacks([])).waiting.keys()]).toEqual(['free'])
      const lockTimeout = expect.stringContaining('lock timeout')
      expect(await swept()).toEqual([lockTimeout, lockTimeout])
      await using ___ = await at('replica', `id = ${me.replicas.id}`)
      expect(await me.replicas.release().catch(String)).toEqual(lockTimeout)
    }
    expect([...(await me.takeCallbacks([])).waiting.keys()]).toEqual(['locked'])
    expect(await swept()).toEqual([undefined, undefined])
    expect(await me.answer({ scope: 'tasks', key: 'k', hash: 'h' })).toBeUndefined()
  })

  test('a migration may take longer than a query', async () => {
    const database = await postgres.createDatabase()
    await postgres.run(
      `create function public.slow() returns event_trigger language plpgsql as $$ begin perform pg_sleep(0.3); end $$`,
      database,
    )
    await postgres.run(
      `create event trigger slow on ddl_command_start when tag in ('CREATE INDEX') execute function public.slow()`,
      database,
    )
    const urls = parseDatabaseUrls([postgres.url(database)], 'test')
    const { log, lines } = memoryLog()
    const rows = new SharedRows({ urls, leaseMs: 3_000, answerMs: 1_000, log })
    await rows.open(30_000)
    await rows.open(30_000)
    expect(lines()).toMatchObject([
      { msg: 'the tables of the database are made or migrated', version: 0, wanted: SCHEMA_VERSION },
    ])
    await rows.close()
  })

  test('a replica of an earlier version is waited for, and buried once its lease is over', async () => {
    const database = await postgres.createDatabase()
    await (await replica(database)).close() // makes the tables
    await postgres.run(
      `insert into taskmill.replica (address, lease_until) values ('http://earlier', clock_timestamp() + interval '1 hour')`,
      database,
    )
    const urls = parseDatabaseUrls([postgres.url(database)], 'test')
    const rows = new SharedRows({ urls, leaseMs: 10_000, answerMs: 5_000, log: silentLog() })
    expect(await rows.replicas.register(true)).toEqual({ id: 2, address: 'http://earlier' })
    await postgres.run('update taskmill.replica set lease_until = clock_timestamp()', database)
    expect(await rows.replicas.register(false)).toMatchObject({ id: 2 })
    expect(await rows.replicas.register(true)).toBeUndefined()
    expect(await rows.replicas.nextBlock()).toBe(rows.replicas.id + 1)
    await rows.close()
  })
})
