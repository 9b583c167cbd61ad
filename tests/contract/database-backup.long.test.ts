/**
 * Goal: a backup of the database is a backup of the cluster. Method: a dump, and a copy of the server's directory, are made
 * while control runs graphs; another control starts on what was restored. Source: docs/cluster.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresPrograms } from '../../scripts/postgres-programs.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { asServerUser, giveToServerUser, PASSWORD, Postgres, startPostgres } from '../support/postgres.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()

/** Runs a program of PostgreSQL as the user of the server. */
function run(name: string, ...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([...asServerUser, join(postgresPrograms()!, name), ...args], {
    ...{ cwd: '/', env: testEnvironment({ LC_ALL: 'C.UTF-8', PGPASSWORD: PASSWORD }) },
  })
  expect([name, exitCode, stderr.toString()]).toEqual([name, 0, ''])
}

describe.skipIf(missing !== undefined)(`a backup${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  let postgres: Postgres
  let runtime: Runtime
  let temp: TempDir
  beforeAll(async () => {
    postgres = await startPostgres()
    runtime = await startRuntime()
    temp = tempDir()
    giveToServerUser(temp.path)
  })
  afterAll(async () => {
    await runtime.dispose()
    await postgres[Symbol.asyncDispose]()
    temp[Symbol.dispose]()
  })

  function startOn(url: string): Promise<Control> {
    const path = join(temp.path, crypto.randomUUID())
    writeFileSync(path, `${url}\n`)
    const flags = ['--database-file', path, '--lease', '2s', '--shutdown-timeout', '0s', '--runtime-url', runtime.url]
    return startControl({ flags })
  }

  /** Ended tasks, with a large result, and one that runs in the runtime service until `go` exists. */
  async function work(control: Control, name: string, go: string, ran: string) {
    const graph = {
      tasks: [
        { id: `${name}-ended`, type: 'os', tool_name: 'shell', params: { command: ['seq', '30000'] } },
        { id: `${name}-runs`, type: 'runtime.script', params: { script: `echo ran >> ${ran}; ${waitFor(go)}` } },
      ],
    }
    const { graph_id } = await control.submit(graph.tasks, { 'idempotency-key': name })
    const ended = await control.ended(`${name}-ended`)
    await until(() => Bun.file(ran).exists())
    await control.reached(`${name}-runs`, 'running')
    return { graph, graphId: graph_id, ended }
  }

  /** What was there goes on on another database: outcomes, keys, and the attempt that runs, which has run once. */
  async function expectGoesOn(
    url: string,
    name: string,
    { graph, graphId, ended }: Awaited<ReturnType<typeof work>>,
    go: string,
    ran: string,
  ) {
    await using restored = await startOn(url)
    // The replica whose rows were copied is declared dead when its lease is over.
    await until(
      () => restored.fetch(`/tasks/${name}-ended`),
      ({ status }) => status !== 503,
    )
    expect(await restored.get(`${name}-ended`)).toEqual(ended)
    const again = await restored.submit(graph.tasks, { 'idempotency-key': name })
    expect(again.graph_id).toBe(graphId)
    await restored.reached(`${name}-runs`, 'running')
    await Bun.write(go, '')
    expect(await restored.ended(`${name}-runs`)).toMatchObject({ status: 'success', attempt: 1 })
    expect(await Bun.file(ran).text()).toBe('ran\n')
    expect(await restored.stop()).toBe(0)
  }

  test('by pg_dump, made while graphs run, is restored into an empty database', async () => {
    const [from, to] = [await postgres.createDatabase(), await postgres.createDatabase()]
    using own = tempDir()
    const [go, ran] = [join(own.path, 'go'), join(own.path, 'ran')]
    const first = await startOn(postgres.url(from))
    const dump = join(temp.path, 'dump')
    let made: Awaited<ReturnType<typeof work>>
    try {
      made = await work(first, 'dump', go, ran)
      run('pg_dump', '-Fc', '-n', 'taskmill', '-f', dump, postgres.url(from))
      await first.stop('SIGKILL')
    } finally {
      await first.dispose()
    }
    run('pg_restore', '--no-owner', '-d', postgres.url(to), dump)
    await expectGoesOn(postgres.url(to), 'dump', made, go, ran)
  }, 120_000)

  test('by pg_basebackup is a server of its own', async () => {
    using own = tempDir()
    const [go, ran] = [join(own.path, 'go'), join(own.path, 'ran')]
    const name = await postgres.createDatabase()
    const first = await startOn(postgres.url(name))
    const directory = join(temp.path, 'copy')
    mkdirSync(directory, { mode: 0o700 })
    giveToServerUser(directory)
    let made: Awaited<ReturnType<typeof work>>
    try {
      made = await work(first, 'copy', go, ran)
      const source = `host=127.0.0.1 port=${postgres.port} user=postgres password=${PASSWORD}`
      run('pg_basebackup', '-D', directory, '-d', source, '-X', 'stream', '-c', 'fast', '--no-sync')
      await first.stop('SIGKILL')
    } finally {
      await first.dispose()
    }
    const port = await freePort()
    appendFileSync(join(directory, 'postgresql.conf'), `port = ${port}\n`)
    await using copy = new Postgres(directory, port)
    await copy.start()
    await expectGoesOn(copy.url(name), 'copy', made, go, ran)
  }, 120_000)
})
