/** Control with --database: what is kept, and what is refused. Source: docs/cluster.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { PASSWORD, type Postgres, startPostgres } from '../support/postgres.ts'
import { answered, healthOf, LEASE_MS, cluster as newCluster, owns } from '../support/replicas.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip
const title = (text: string) => (missing === undefined ? text : `${text} (${missing})`)

withPostgres(title('control on a database'), () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  const cluster = (servers: readonly Postgres[] = [postgres]) => newCluster(servers)

  test('keeps graphs over a stop and a start, on any machine', async () => {
    using each = await cluster()
    await using first = await each.replica()
    const { graph_id } = await first.submit([
      { id: 'a', type: 'os', tool_name: 'shell', params: { command: ['echo', 'hello'] } },
      { id: 'big', type: 'os', tool_name: 'shell', params: { command: ['seq', '30000'] }, depends_on: ['a'] },
    ])
    const ended = [await first.ended('a'), await first.ended('big')]
    expect(await healthOf(first)).toMatchObject({ replica: { id: 1, epoch: 1, graphs: 1 } })
    const metrics = await (await first.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
    expect(metrics).toContain('service_control_replica_owned_graphs 1\n')
    const [, turns] = /^service_control_replica_turn_duration_seconds_count (\d+)$/m.exec(metrics) ?? []
    expect(Number(turns)).toBeGreaterThan(0)
    const [, lease] = /^service_control_replica_lease_seconds (\S+)$/m.exec(metrics) ?? []
    expect(Number(lease)).toBeGreaterThan(0)
    expect(Number(lease)).toBeLessThanOrEqual(LEASE_MS / 1_000)
    expect(await first.stop()).toBe(0)
    await using second = await each.replica() // with another data directory
    expect([await second.get('a'), await second.get('big')]).toEqual(ended)
    expect(await healthOf(second)).toMatchObject({ replica: { id: 2, graphs: 1 } })
    const removed = await second.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })
    expect(removed.status).toBe(204)
    await second.submit([{ id: 'a', type: 'os', tool_name: 'noop' }]) // its id is free again
    await second.ended('a')
    expect(await second.stop()).toBe(0)
    expect(await postgres.run('select count(*)::int as n from taskmill.graph', each.database)).toEqual([{ n: 1 }])
  })

  describe('when the database fails', () => {
    test('is killed and back: 503 meanwhile, and what was acknowledged is there', async () => {
      await using own = await startPostgres()
      using each = await cluster([own])
      await using control = await each.replica()
      const acknowledged: string[] = []
      let isOver = false
      const submitting = (async () => {
        const statuses = new Set<number>()
        for (let i = 0; !isOver; i++) {
          const response = await control.post({ tasks: [{ id: `t${i}`, type: 'os', tool_name: 'noop' }] })
          statuses.add(response.status)
          if (response.status === 202) acknowledged.push(`t${i}`)
        }
        return statuses
      })()
      await until(
        () => acknowledged.length,
        (count) => count > 20,
      )
      await own.kill()
      const isRefusing = async () => (await control.fetch('/readyz')).status
      expect(await until(isRefusing, (status) => status === 503)).toBe(503)
      const refused = await control.post({ tasks: [{ id: 'refused', type: 'os', tool_name: 'noop' }] })
      expect(refused.status).toBe(503)
      const before = acknowledged.length
      await own.start()
      await until(
        () => acknowledged.length,
        (count) => count > before + 20,
      )
      isOver = true
      for (const status of await submitting) expect([202, 503]).toContain(status)
      await control.allEnded()
      const { graphs } = (await healthOf(control)).replica
      await control.stop('SIGKILL')
      await using next = await each.replica()
      await owns(next, graphs)
      const found = new Set((await next.allEnded()).map(({ id }) => id))
      expect(acknowledged.filter((id) => !found.has(id))).toEqual([])
      expect(await next.stop()).toBe(0)
    })

    test('fails over to a synchronous standby: what was acknowledged is there', async () => {
      await using primary = await startPostgres({ standby: true })
      const standby = primary.standby!
      using each = await cluster([primary, standby])
      await using control = await each.replica()
      for (let i = 0; i < 20; i++) await control.submit([{ id: `t${i}`, type: 'os', tool_name: 'noop' }])
      await primary.kill()
      await standby.promote()
      await until(
        () => control.post({ tasks: [{ id: `after-${crypto.randomUUID()}`, type: 'os', tool_name: 'noop' }] }),
        ({ status }) => status === 202,
      )
      const tasks = await control.allEnded()
      expect(tasks.filter(({ id }) => id.startsWith('t')).length).toBe(20)
      expect(await control.stop()).toBe(0)
    })
  })

  describe('refuses', () => {
    test('a data directory with graphs of its own', async () => {
      using each = await cluster()
      using temp = tempDir()
      const alone = await startControl({ dataDir: temp.path })
      await alone.submit([{ id: 'a', type: 'os', tool_name: 'noop' }])
      await alone.stop()
      await alone.dispose()
      await expect(each.replica(['--data-dir', temp.path])).rejects.toThrow(
        `the data directory ${temp.path} has graphs of a service without --database`,
      )
    })

    test('a start without a database, with exit code 1 and no password', async () => {
      const flags = ['--database-timeout', '300ms']
      const port = await freePort()
      const env = { SERVICE_DATABASE_URLS: `postgres://mill:${PASSWORD}@127.0.0.1:${port}/mill` }
      const error: Error = await startControl({ flags, env }).then(
        () => new Error('it started'),
        (thrown) => thrown,
      )
      expect(error.message).toContain(
        `cannot start: no database within 0.3 s (--database-timeout): 127.0.0.1:${port}/mill: `,
      )
      expect(error.message).not.toContain(PASSWORD)
    })

    test('a server that refuses, by its name and without the password', async () => {
      using each = await cluster()
      const right = new URL(postgres.url(each.database))
      const place = `${right.host}/${each.database}`
      const wrong = new URL(right)
      wrong.password = 'mistaken'
      const missing = new URL(right)
      missing.pathname = '/no_such'
      for (const [url, text] of [
        [wrong, `cannot use the database ${place}: password authentication failed`],
        [missing, `cannot use the database ${right.host}/no_such: database "no_such" does not exist`],
      ] as const) {
        const error: Error = await startControl({ env: { SERVICE_DATABASE_URLS: url.href } }).then(
          () => new Error('it started'),
          (thrown) => thrown,
        )
        expect(error.message).toContain(text)
        expect(error.message).not.toContain('mistaken')
        expect(error.message).not.toContain(PASSWORD)
      }
    })

    test('a start without it on a data directory that was last used with one, and names it', async () => {
      using each = await cluster()
      using temp = tempDir()
      const start = () => startControl({ dataDir: temp.path, flags: each.flags })
      {
        await using control = await start()
        await control.submit([{ id: 'a', type: 'os', tool_name: 'noop' }])
      }
      const { host } = new URL(postgres.url(each.database))
      await expect(startControl({ dataDir: temp.path })).rejects.toThrow(
        `the data directory ${temp.path} was last used with a database (${host}/${each.database}), which has its graphs: give --database`,
      )
      await using control = await start()
      expect((await answered(control, '/tasks/a')).status).toBe(200)
    })

    test('a database that runs with fsync = off', async () => {
      await using unsafe = await startPostgres({ settings: { fsync: 'off' } })
      using each = await cluster([unsafe])
      await expect(each.replica()).rejects.toThrow('the database runs with fsync = off')
    })
  })
})
