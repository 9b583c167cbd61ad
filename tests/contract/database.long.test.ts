/** Control with --database: one active replica and standbys. Source: docs/cluster.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { PASSWORD, type Postgres, startPostgres } from '../support/postgres.ts'
import { startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip
const title = (text: string) => (missing === undefined ? text : `${text} (${missing})`)

const LEASE_MS = 2_000

/** A file with the addresses, which goes with the test. */
function addressFile(dir: string, servers: readonly Postgres[], database: string): string {
  const path = join(dir, 'database')
  writeFileSync(path, servers.map((server) => `${server.url(database)}\n`).join(''))
  return path
}

withPostgres(title('control on a database'), () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  /** Starts replicas of a cluster of its own. */
  async function cluster(servers: readonly Postgres[] = [postgres]) {
    const temp = tempDir()
    const database = await servers[0]!.createDatabase()
    const file = addressFile(temp.path, servers, database)
    const replica = (flags: readonly string[] = []): Promise<Control> =>
      startControl({
        flags: ['--database-file', file, '--lease', `${LEASE_MS}ms`, '--shutdown-timeout', '0s', ...flags],
      })
    return { replica, database, [Symbol.dispose]: () => temp[Symbol.dispose]() }
  }

  const health = async (control: Control) => (await control.fetch('/health')).json()

  test('keeps graphs over a stop and a start, on any machine', async () => {
    using each = await cluster()
    await using first = await each.replica()
    const { graph_id } = await first.submit([
      { id: 'a', type: 'os', tool_name: 'shell', params: { command: ['echo', 'hello'] } },
      { id: 'big', type: 'os', tool_name: 'shell', params: { command: ['seq', '30000'] }, depends_on: ['a'] },
    ])
    const ended = [await first.ended('a'), await first.ended('big')]
    expect(await health(first)).toMatchObject({ replica: { id: 1, epoch: 1, graphs: 1 } })
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
    expect(await health(second)).toMatchObject({ replica: { id: 2, graphs: 1 } })
    const removed = await second.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })
    expect(removed.status).toBe(204)
    await second.submit([{ id: 'a', type: 'os', tool_name: 'noop' }]) // its id is free again
    await second.ended('a')
    expect(await second.stop()).toBe(0)
    expect(await postgres.run('select count(*)::int as n from taskmill.graph', each.database)).toEqual([{ n: 1 }])
  })

  test('a standby answers 503, and takes over when the active replica is killed', async () => {
    using each = await cluster()
    await using first = await each.replica()
    await first.submit(
      [
        { id: 'done', type: 'os', tool_name: 'noop' },
        { id: 'held', type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 }, depends_on: ['done'] },
        { id: 'cancelled', type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } },
      ],
      { 'idempotency-key': 'k' },
    )
    await first.reached('held', 'running')
    expect((await first.fetch('/tasks/cancelled/cancel', { method: 'POST' })).ok).toBe(true)
    const port = await freePort()
    const starting = each.replica(['--addr', `127.0.0.1:${port}`])
    const standby = () => fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    const answer = await until(standby, (response) => response !== undefined)
    expect([answer!.status, answer!.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await answer!.json()).toEqual({ error: 'this replica is a standby: another one is active' })
    const killedAt = performance.now()
    await first.stop('SIGKILL')
    await using second = await starting
    expect(performance.now() - killedAt).toBeGreaterThan(LEASE_MS / 4) // not before the lease is over
    expect(await second.get('done')).toMatchObject({ status: 'success' })
    expect(await second.reached('held', 'running')).toMatchObject({ runtime: { attempt: 2 } })
    expect(await second.get('cancelled')).toMatchObject({ status: 'cancelled' })
    await second.fetch('/tasks/held/cancel', { method: 'POST' })
    expect(await second.ended('held')).toMatchObject({ status: 'cancelled' })
    expect(await second.stop()).toBe(0)
  })

  test('an attempt in the runtime service goes on over a takeover: it runs once', async () => {
    using each = await cluster()
    await using runtime = await startRuntime()
    using temp = tempDir()
    const [ran, go] = [join(temp.path, 'ran'), join(temp.path, 'go')]
    const flags = ['--runtime-url', runtime.url]
    await using first = await each.replica(flags)
    const script = `echo ran >> ${ran}; ${waitFor(go)}; exit 7`
    const { graph_id } = await first.submit([{ id: 'a', type: 'runtime.script', params: { script } }])
    await until(
      () => Bun.file(ran).exists(),
      (hasRun) => hasRun,
    )
    await first.reached('a', 'running')
    const starting = each.replica(flags)
    await first.stop('SIGKILL')
    await using second = await starting
    await second.reached('a', 'running')
    await Bun.write(go, '')
    const ended = { status: 'failed', attempt: 1, handle_id: `a-${graph_id}-1`, error: 'task exited with code 7' }
    expect(await second.ended('a')).toMatchObject(ended)
    expect(await Bun.file(ran).text()).toBe('ran\n')
    expect(await second.stop()).toBe(0)
  })

  test('a replica that wakes up after another one has taken over ends with 75, and answers nothing', async () => {
    using each = await cluster()
    await using first = await each.replica()
    await first.submit([{ id: 'a', type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } }])
    await first.reached('a', 'running')
    first.process.kill('SIGSTOP')
    await using second = await each.replica()
    expect(await second.reached('a', 'running')).toMatchObject({ runtime: { attempt: 2 } })
    first.process.kill('SIGCONT')
    const late = await first.fetch('/tasks/a').catch(() => undefined)
    if (late !== undefined) expect(late.status).toBe(503)
    expect(await first.process.exited).toBe(75)
    expect(await second.get('a')).toMatchObject({ status: 'running' })
    expect(await second.stop()).toBe(0)
  })

  test('a stop gives the lease back: the standby takes over at once', async () => {
    using each = await cluster()
    await using first = await each.replica(['--lease', '10m'])
    await first.submit([{ id: 'a', type: 'os', tool_name: 'noop' }])
    await first.ended('a')
    const starting = each.replica(['--lease', '10m'])
    expect(await first.stop()).toBe(0)
    await using second = await starting
    expect(await second.get('a')).toMatchObject({ status: 'success' })
    expect(await second.stop()).toBe(0)
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
      await control.stop('SIGKILL')
      await using next = await each.replica()
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
    test.each([
      ['a callback', { callback: { url: 'http://127.0.0.1:1/' } }, {}, 'callback is not available with --database yet'],
      ['cached outcomes', {}, { cache: { key: 'k' } }, 'cache is not available with --database yet'],
    ])('%s', async (_, options, task, error) => {
      using each = await cluster()
      await using control = await each.replica(['--callback-policy', 'any'])
      const response = await control.post({ ...options, tasks: [{ id: 'a', type: 'os', tool_name: 'noop', ...task }] })
      expect([response.status, await response.json()]).toEqual([501, { error }])
      expect((await control.fetch('/tasks/a')).status).toBe(404)
      expect(await control.stop()).toBe(0)
    })

    test('a rerun', async () => {
      using each = await cluster()
      await using control = await each.replica()
      const { graph_id } = await control.submit([{ id: 'a', type: 'os', tool_name: 'noop' }])
      await control.ended('a')
      const response = await control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST', body: '{"from":["a"]}' })
      const error = 'rerun is not available with --database yet'
      expect([response.status, await response.json()]).toEqual([501, { error }])
      expect(await control.stop()).toBe(0)
    })

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
      const env = { SERVICE_DATABASE_URLS: `postgres://mill:${PASSWORD}@127.0.0.1:${await freePort()}/mill` }
      const error: Error = await startControl({ flags, env }).then(
        () => new Error('it started'),
        (thrown) => thrown,
      )
      expect(error.message).toContain('cannot start: no database within 0.3 s (--database-timeout)')
      expect(error.message).not.toContain(PASSWORD)
    })

    test('a database that runs with fsync = off', async () => {
      await using unsafe = await startPostgres({ settings: { fsync: 'off' } })
      using each = await cluster([unsafe])
      await expect(each.replica()).rejects.toThrow('the database runs with fsync = off')
    })
  })
})
