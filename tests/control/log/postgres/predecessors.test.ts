/**
 * Goal: a replica that has the lock of an earlier one adopts its graphs at once, and nothing that the earlier one has sent
 * changes them any more. Method: turns of the earlier one that the server executes before, while or after the later one
 * registers.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeSync, cpSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { Fenced, type SharedRows } from '../../../../control/log/postgres/shared-rows.ts'
import { writeTurn } from '../../../../control/log/postgres/turn-statement.ts'
import { LOCK_FILES, lockDirectory, lockIdOf } from '../../../../shared/files/directory-lock.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'
import { frame, graph, openRows, registeredRows, writes } from '../../../support/shared-rows.ts'
import { tempDir } from '../../../support/temp.ts'
import { until } from '../../../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip

test('a lock has the same id whenever it is taken; that of a copy of its directory has another', () => {
  using temp = tempDir()
  const idOf = (directory: string) => {
    const fd = lockDirectory(directory, LOCK_FILES.control)
    const id = lockIdOf(fd)
    closeSync(fd)
    return id
  }
  const directory = mkdtempSync(join(temp.path, 'data-'))
  const id = idOf(directory)
  expect(id).toMatch(/^[0-9a-f-]{36}\/\d+-\d+$/)
  expect(idOf(directory)).toBe(id!)
  const copy = join(temp.path, 'copy')
  cpSync(directory, copy, { recursive: true })
  expect(idOf(copy)).not.toBe(id!)
})

withPostgres(missing === undefined ? 'the lock of an earlier replica' : `the lock (${missing})`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })
  const lockId = 'boot/1-2'

  const adoptedBy = async (rows: SharedRows, owner: number) => {
    const adopted = await rows.adoptions.adopt({ owner, after: 0, isLive: true })
    const kept = await rows.adoptions.kept(adopted.map(({ ordinal }) => ordinal))
    return kept.map(({ ordinal, frames }) => [ordinal, frames])
  }

  test('shows that it has ended, although its lease is not over; other locks show nothing', async () => {
    const url = postgres.url(await postgres.createDatabase())
    await using first = await registeredRows([url], { lockId })
    await using other = await registeredRows([url], { lockId: 'boot/1-3' })
    await using without = await registeredRows([url])
    await first.turn(writes({ graphs: [graph(1)], frames: [frame(1, 1, '[1]')] }))
    await using second = await registeredRows([url], { lockId })
    expect([...second.replicas.predecessors]).toEqual([first.replicas.id])
    expect(await adoptedBy(second, first.replicas.id)).toEqual([[1, ['[1]']]])
    await expect(first.turn(writes({ frames: [frame(1, 2, '[2]')] }))).rejects.toThrow(Fenced)
    expect((await second.adoptions.kept([1]))[0]!.frames).toEqual(['[1]'])
    await using again = await registeredRows([url], { lockId })
    expect([...again.replicas.predecessors]).toEqual([second.replicas.id])
    await using anonymous = await registeredRows([url])
    expect([...anonymous.replicas.predecessors]).toEqual([])
    for (const rows of [other, without, again, anonymous]) await rows.turn(writes({}))
  })

  test('a turn that the server still executes is waited for, and is not lost', async () => {
    const database = await postgres.createDatabase()
    const url = postgres.url(database)
    await using first = await registeredRows([url], { lockId })
    await using second = await openRows([url], { lockId })
    const { id, epoch } = first.replicas
    const sql = new SQL(url, { database, max: 1 })
    const { promise: committing, resolve: commit } = Promise.withResolvers<void>()
    const { promise: executed, resolve: isExecuted } = Promise.withResolvers<void>()
    const last = sql.begin(async (transaction) => {
      const settings = `set_config('lock_timeout', '0', true)`
      const turn = { id, epoch, number: 1, leaseMs: 60_000, settings, stored: { all: 0, ended: 0 } }
      await writeTurn(transaction, turn, writes({ graphs: [graph(7)] }))
      isExecuted()
      await committing
    })
    await executed
    let isRegistered = false
    const registering = second.replicas.register(false).then(() => {
      isRegistered = true
    })
    const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = '${database}'`
    await until(
      async () => (await postgres.run(waiting, database))[0]!.n,
      (count) => count === 1,
    )
    expect(isRegistered).toBe(false)
    commit()
    await Promise.all([last, registering])
    expect([...second.replicas.predecessors]).toEqual([id])
    expect(await adoptedBy(second, id)).toEqual([[7, []]])
    await sql.close()
  })

  test('a turn at the same moment is either kept before, or refused', async () => {
    const url = postgres.url(await postgres.createDatabase())
    let last = await registeredRows([url], { lockId })
    for (let i = 1; i <= 20; i++) {
      await using earlier = last
      last = await openRows([url], { lockId })
      const [fault] = await Promise.all([
        earlier.turn(writes({ graphs: [graph(i)] })).then(
          () => undefined,
          (error) => error.name,
        ),
        last.replicas.register(false),
      ])
      expect([...last.replicas.predecessors]).toEqual([earlier.replicas.id])
      const adopted = (await adoptedBy(last, earlier.replicas.id)).map(([ordinal]) => ordinal)
      expect([i, fault, adopted.includes(i)]).toEqual([i, fault, fault === undefined])
      if (fault !== undefined) expect(fault).toBe('Fenced')
    }
    await last.close()
  })
})
