/**
 * Goal: a turn is written once, whatever becomes of its connection, and never by a replica that has lost the lease.
 * Method: a real server behind a link that is cut before a request arrives, or before its answer does.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Socket } from 'bun'
import { parseDatabaseUrls } from '../../../control/shared-store/database-url.ts'
import { Fenced, InUse, SharedRows } from '../../../control/shared-store/shared-rows.ts'
import type { TurnWrites } from '../../../control/shared-store/turn-writes.ts'
import { silentLog } from '../../../shared/log.ts'
import { mustPostgres } from '../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../support/postgres.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip

const nothing: TurnWrites = { graphs: [], frames: [], removed: [], freedIds: [], freedKeys: [], unusedResults: [] }
const graphOf = (ordinal: number, taskIds: readonly string[]) => ({
  ...{ ordinal, id: `graph-${ordinal}`, payload: `{"n":${ordinal}}`, taskIds, key: undefined },
})
const frameOf = (ordinal: number, number: number) => ({ ordinal, number, payload: `[${number}]` })

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
    expect(await rows.activate('http://127.0.0.1:1', true)).toBeUndefined()
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
    const kept = await rows.graphsAfter(0, 10)
    expect(kept.map(({ ordinal, frames }) => [ordinal, frames])).toEqual([1, 2, 3, 4, 5].map((i) => [i, [`[${i}]`]]))
    expect(await postgres.run('select turn::int as turn from taskmill.replica', database)).toEqual([{ turn: 5 }])
  })

  test('write nothing if an id is in use, and are taken again', async () => {
    await using rows = await replica(await postgres.createDatabase())
    await rows.turn({ ...nothing, graphs: [graphOf(1, ['a', 'b'])] })
    const refused = { ...nothing, graphs: [graphOf(2, ['c', 'b'])], frames: [frameOf(1, 1)] }
    await expect(rows.turn(refused)).rejects.toThrow(InUse)
    expect((await rows.graphsAfter(0, 10)).map(({ ordinal, frames }) => [ordinal, frames])).toEqual([[1, []]])
    await rows.turn({ ...nothing, freedIds: [[1, 'b']] })
    await rows.turn(refused)
    const kept = await rows.graphsAfter(0, 10)
    expect(kept.map(({ ordinal, ownIds }) => [ordinal, [...ownIds].sort()])).toEqual([
      [1, ['a']],
      [2, ['b', 'c']],
    ])
  })

  test('keep ids as they are, whatever they look like', async () => {
    const ids = ['', 'NULL', '{}', '"', '\\', ',', "'", '😀', '__proto__', 'a\nb', ' ']
    await using rows = await replica(await postgres.createDatabase())
    await rows.turn({ ...nothing, graphs: [graphOf(1, ids)] })
    const [graph] = await rows.graphsAfter(0, 1)
    expect([...graph!.ownIds].sort()).toEqual(ids.toSorted())
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
    expect(await rows.answer({ scope: 'tasks', key: 'k', hash: 'other' })).toEqual(key)
    await rows.sweep(6)
    expect(await rows.answer({ scope: 'tasks', key: 'k', hash: 'h' })).toBeUndefined()
  })

  test('of a replica whose lease another one has are refused', async () => {
    const database = await postgres.createDatabase()
    await using first = await replica(database)
    await first.turn({ ...nothing, graphs: [graphOf(1, ['a'])] })
    await postgres.run(`update taskmill.replica set lease_until = clock_timestamp()`, database)
    await using second = await replica(database)
    const late = { ...nothing, graphs: [graphOf(2, ['b'])], frames: [frameOf(1, 1)] }
    await expect(first.turn(late)).rejects.toThrow(Fenced)
    await second.turn({ ...nothing, frames: [frameOf(1, 2)] })
    const kept = await second.graphsAfter(0, 10)
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

  test('one of many replicas that start together gets the lease', async () => {
    const database = await postgres.createDatabase()
    const urls = parseDatabaseUrls([postgres.url(database)], 'test')
    const many = Array.from(
      { length: 5 },
      () => new SharedRows({ urls, leaseMs: 10_000, answerMs: 5_000, log: silentLog() }),
    )
    const answers = await Promise.all(
      many.map(async (rows, i) => {
        await rows.open(30_000)
        return await rows.activate(`http://${i}`, false)
      }),
    )
    const winners = answers.flatMap((active, i) => (active === undefined ? [i] : []))
    expect(winners.length).toBe(1)
    const others = answers.filter((active) => active !== undefined)
    expect(others.map(({ address }) => address)).toEqual(Array(4).fill(`http://${winners[0]}`))
    for (const rows of many) await rows.close()
  })
})
