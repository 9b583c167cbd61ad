/**
 * A replica that is killed and started again with its data directory goes on at once. Source: docs/cluster.md.
 *
 * Method: a lease that no test waits for, load until each kill, and connections whose last bytes arrive only after the next
 * start.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Control } from '../support/control.ts'
import { startControl } from '../support/control.ts'
import { startCuttingLink } from '../support/cutting-link.ts'
import { lockedRows } from '../support/locked-rows.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { spawnService } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip

const ROUNDS = 4
const CLIENTS = 4
/** Graphs that are accepted before a kill. */
const LOAD = 12

const KILLED = 'the killed replica of this data directory was declared dead'

withPostgres(missing === undefined ? 'a killed replica' : `a killed replica (${missing})`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  const start = (url: string, dataDir: string): Promise<Control> =>
    startControl({ dataDir, flags: ['--database', url, '--lease', '10m', '--shutdown-timeout', '0s'] })

  /** Submits graphs until nobody answers. Adds what was accepted to `accepted`. */
  async function load(control: Control, name: string, accepted: string[]): Promise<void> {
    const client = async (n: number) => {
      for (let i = 0; ; i++) {
        const id = `${name}-${n}-${i}`
        const tasks = [
          { id, type: 'os', tool_name: 'sleep', params: { duration_ms: 20 } },
          { id: `${id}-later`, type: 'os', tool_name: 'noop', depends_on: [id] },
        ]
        const status = await control.post({ tasks }).then(
          (response) => response.status,
          () => 0,
        )
        if (status !== 202) return
        accepted.push(id)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, n) => client(n)))
  }

  test('has its graphs again as soon as it runs, kill after kill under load', async () => {
    using temp = tempDir()
    const dataDir = join(temp.path, 'data')
    const url = postgres.url(await postgres.createDatabase())
    const accepted: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await start(url, dataDir)
      expect(control.log.filter(({ msg }) => msg === KILLED)).toHaveLength(round === 0 ? 0 : 1)
      const found = new Set((await control.list()).map(({ id }) => id))
      expect(accepted.filter((id) => !found.has(id) || !found.has(`${id}-later`))).toEqual([])
      const before = accepted.length
      const loading = load(control, `r${round}`, accepted)
      await until(
        async () => accepted.length,
        (count) => count >= before + LOAD,
      )
      await control.stop('SIGKILL')
      await loading
    }
    await using control = await start(url, dataDir)
    const tasks = await control.allEnded()
    expect(tasks.filter(({ status }) => status !== 'success')).toEqual([])
    const found = new Set(tasks.map(({ id }) => id))
    expect(accepted.filter((id) => !found.has(id))).toEqual([])
  })

  test('waits for --database-timeout, and says why, while somebody has locked its row', async () => {
    using temp = tempDir()
    const database = await postgres.createDatabase()
    const options = {
      dataDir: join(temp.path, 'data'),
      flags: ['--database', postgres.url(database), '--lease', '6s', '--database-timeout', '3s'],
    }
    const killed = await startControl(options)
    await killed.stop('SIGKILL')
    await killed.dispose()
    const locked = /the database waits for a lock that somebody holds/
    {
      await using _ = await lockedRows(postgres, database, 'select from taskmill.replica for update')
      await using stack = new AsyncDisposableStack()
      const start = await spawnService('taskmill-control', ['--addr', '127.0.0.1:0'], options)
      stack.defer(start.dispose)
      expect(await start.process.exited).toBe(1)
      await start.allLogged
      expect(await start.stderr).toContain('no database within 3 s (--database-timeout)')
      const told = start.log.filter(({ msg }) => msg === 'this replica is not registered yet')
      expect(told).toEqual([expect.objectContaining({ cause: expect.stringMatching(locked) })])
    }
    await using control = await startControl(options)
    expect(control.log.filter(({ msg }) => msg === KILLED)).toHaveLength(1)
  })

  test('changes nothing with what it had sent and the server gets only after its restart', async () => {
    using temp = tempDir()
    const dataDir = join(temp.path, 'data')
    const url = postgres.url(await postgres.createDatabase())
    for (let round = 0; round < ROUNDS; round++) {
      await using link = await startCuttingLink(postgres.port)
      await using earlier = await start(link.through(url), dataDir)
      const accepted: string[] = []
      const loading = load(earlier, `h${round}`, accepted)
      await until(
        async () => accepted.length,
        (count) => count >= LOAD,
      )
      link.hold()
      await earlier.stop('SIGKILL')
      await loading
      await using control = await start(url, dataDir)
      const idsOf = async () => (await control.allEnded()).map(({ id, status }) => `${id} ${status}`).sort()
      const before = await idsOf()
      for (const id of accepted) expect(before).toContain(`${id} success`)
      link.release()
      const after = await control.run({ id: `after-${round}`, type: 'os', tool_name: 'noop' })
      expect(after.status).toBe('success')
      const rows = `select count(*)::int as n from taskmill.graph where owner <> (select max(id) from taskmill.replica)`
      expect(await postgres.run(rows, new URL(url).pathname.slice(1))).toEqual([{ n: 0 }])
      expect(await idsOf()).toEqual([...before, `after-${round} success`].sort())
      expect((await fetch(`${control.url}/readyz`)).status).toBe(200)
      await control.stop('SIGKILL')
    }
  })
})
