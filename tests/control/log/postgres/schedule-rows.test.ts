/** Schedules in a real database: what a turn refuses, what a change refuses, and which rows stay. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { newProgress } from '../../../../control/log/kept-schedules.ts'
import { InUse } from '../../../../control/log/postgres/database.ts'
import { MAX_RUN_ROWS, readSchedules, writeSchedule } from '../../../../control/log/postgres/schedule-rows.ts'
import type { SharedRows } from '../../../../control/log/postgres/shared-rows.ts'
import type { NewScheduleChange, TurnNews } from '../../../../control/log/postgres/turn-writes.ts'
import type { ScheduleDefinition, ScheduleProgress } from '../../../../control/rules/schedule.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'
import { graph, registeredRows, writes } from '../../../support/shared-rows.ts'

const missing = mustPostgres()

const definition: ScheduleDefinition = {
  ...{ fields: { every: 1_000 }, graph: { tasks: [] }, since: 0, created_at: 0, updated_at: 0 },
}
const at = (settled: number): ScheduleProgress => newProgress(settled)

describe.skipIf(missing !== undefined)(`rows of schedules${missing === undefined ? '' : ` (${missing})`}`, () => {
  let postgres: Postgres
  let database: string
  let url: string
  let ordinal = 1
  beforeAll(async () => {
    postgres = await startPostgres()
    database = await postgres.createDatabase()
    url = postgres.url(database)
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  const keep = (
    { database }: SharedRows,
    name: string,
    known: number | undefined,
    progress: ScheduleProgress | undefined,
  ) => database.soon((sql) => writeSchedule(sql, database.settings, name, known, progress && { definition, progress }))
  const submit = (rows: SharedRows, change: NewScheduleChange) =>
    rows.turn(writes({ graphs: [{ ...graph(ordinal++), schedule: change }] }))
  const change = (name: string, version: number, due?: number): NewScheduleChange => ({
    ...{ name, version, progress: JSON.stringify(at(due ?? 0)), ...(due !== undefined && { due }) },
  })
  const read = ({ database }: SharedRows, name: string, known: ReadonlyMap<string, number> = new Map()) =>
    database.soon((sql) => readSchedules(sql, known, name))
  const runs = async (name: string) =>
    (
      await postgres.run(`select due from taskmill.schedule_run where schedule = '${name}' order by number`, database)
    ).map(({ due }) => (due === null ? undefined : Number(due)))
  const count = async (table: string) =>
    Number((await postgres.run(`select count(*)::int as n from taskmill.${table}`, database))[0]!.n)

  test('of two replicas that submit for a version, one has its turn refused, and nothing of it is kept', async () => {
    await using a = await registeredRows([url])
    await using b = await registeredRows([url])
    const version = (await keep(a, 'one', undefined, at(0)))!
    const before = await count('graph')
    const both = await Promise.allSettled([
      submit(a, change('one', version, 1_000)),
      submit(b, change('one', version, 1_000)),
    ])
    const refused = both.flatMap((result) => (result.status === 'rejected' ? result.reason : []))
    expect(refused).toEqual([expect.any(InUse)])
    expect(await count('graph')).toBe(before + 1)
    expect(await runs('one')).toEqual([1_000])
    expect((await read(a, 'one')).get('one')).toEqual({ definition, progress: at(1_000), version: version + 1 })
    // However late: also for another due time, and without one.
    for (const due of [1_000, 2_000, undefined])
      await expect(submit(b, change('one', version, due))).rejects.toThrow(InUse)
    await submit(b, change('one', version + 1))
    expect(await runs('one')).toEqual([1_000, undefined])
    // Also after a change without a graph.
    await keep(a, 'one', version + 2, at(5_000))
    await expect(submit(b, change('one', version + 2, 2_000))).rejects.toThrow(InUse)
  })

  test('a due time has one graph although nothing else has changed', async () => {
    await using rows = await registeredRows([url])
    const version = (await keep(rows, 'two', undefined, at(0)))!
    await submit(rows, change('two', version, 1_000))
    await expect(submit(rows, change('two', version + 1, 1_000))).rejects.toThrow(InUse)
    // Unless it waits again, or is still to come, as after a graph that was refused, or a clock that was set back.
    await keep(rows, 'two', version + 1, { ...at(1_000), waiting: [1_000] })
    await submit(rows, change('two', version + 2, 1_000))
    await keep(rows, 'two', version + 3, at(500))
    await submit(rows, change('two', version + 4, 1_000))
    expect(await runs('two')).toEqual([1_000])
  })

  test('a change is made to the version that was read, once, and one that is repeated is found', async () => {
    await using a = await registeredRows([url])
    const first = (await keep(a, 'three', undefined, at(0)))!
    expect(await keep(a, 'three', undefined, at(7))).toBeUndefined()
    expect(await keep(a, 'three', first, at(1))).toBe(first + 1)
    expect(await keep(a, 'three', first, at(1))).toBe(first + 1) // its answer was lost
    expect(await keep(a, 'three', first, at(2))).toBeUndefined()
    expect(await keep(a, 'three', first, undefined)).toBeUndefined()
    expect(await keep(a, 'three', first + 1, undefined)).toBe(first + 1)
    expect(await keep(a, 'three', first + 1, undefined)).toBe(0) // it is gone already
    // A later schedule with the name has no version of the earlier one.
    expect(await keep(a, 'three', undefined, at(0))).toBeGreaterThan(first + 1_000)
  })

  test('a read has what differs from what is known', async () => {
    await using a = await registeredRows([url])
    const version = (await keep(a, 'four', undefined, at(0)))!
    expect([...(await read(a, 'four')).keys()]).toEqual(['four'])
    expect(await read(a, 'four', new Map([['four', version]]))).toEqual(new Map())
    expect(await read(a, 'none', new Map([['none', 1], ['four', 1]]))).toEqual(new Map([['none', undefined]])) // biome-ignore format: one case
    const all = await a.database.soon((sql) => readSchedules(sql, new Map([['none', 1]])))
    expect([all.get('none'), all.get('four')?.version]).toEqual([undefined, version])
  })

  test('of the rows of its graphs, those of the last MAX_RUN_ROWS changes stay', async () => {
    await using a = await registeredRows([url])
    const version = (await keep(a, 'five', undefined, at(0)))!
    await submit(a, change('five', version, 1_000))
    await postgres.run(
      `update taskmill.schedule set version = version + ${MAX_RUN_ROWS - 1} where name = 'five'`,
      database,
    )
    await submit(a, change('five', version + MAX_RUN_ROWS, 2_000))
    expect(await runs('five')).toEqual([1_000, 2_000])
    await submit(a, change('five', version + MAX_RUN_ROWS + 1, 3_000))
    expect(await runs('five')).toEqual([2_000, 3_000])
    await keep(a, 'five', version + MAX_RUN_ROWS + 2, undefined)
    expect(await runs('five')).toEqual([])
  })

  test('a turn tells the time in the database, and who submits', async () => {
    await using a = await registeredRows([url])
    await using b = await registeredRows([url])
    let news: TurnNews | undefined
    a.onNews = (told) => {
      news = told
    }
    await a.turn(writes({}))
    expect(news?.submitters.split(',')).not.toContain(String(b.replicas.id))
    await b.replicas.reachableAt('http://b')
    await a.turn(writes({}))
    expect(news?.submitters.split(',')).toContain(String(b.replicas.id))
    const [row] = await postgres.run('select extract(epoch from clock_timestamp()) * 1000 as at', database)
    expect(Number(row!.at) - news!.at).toBeWithin(0, 20_000)
  })
})
