/**
 * Databases of every earlier version of the schema load, for ever: `tests/data/database/` was written by those versions
 * (`tests/support/keep-database.ts`). And a newer schema is refused in one line, and left as it is. Source: docs/upgrade.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { SCHEMA_VERSION } from '../../control/log/postgres/shared-schema.ts'
import { builtProgram } from '../../scripts/build.ts'
import type { Control } from '../support/control.ts'
import { settled, statusesOf } from '../support/keep-data.ts'
import { KEPT_DATABASES, type KeptDatabase } from '../support/keep-database.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { cluster } from '../support/replicas.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip

const schemas = readdirSync(KEPT_DATABASES).flatMap((name) => /^(schema-\d+)\.sql$/.exec(name)?.[1] ?? [])

withPostgres(`databases of other versions${missing === undefined ? '' : ` (${missing})`}`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  test('there are some', () => {
    expect(schemas.length).toBeGreaterThan(0)
  })

  test.each(schemas)('%s loads, its graphs go on, and it loads again', async (schema) => {
    const kept = JSON.parse(readFileSync(join(KEPT_DATABASES, `${schema}.json`), 'utf8')) as KeptDatabase
    using each = await cluster([postgres])
    await load(readFileSync(join(KEPT_DATABASES, `${schema}.sql`), 'utf8'), each.database)
    await postgres.run(`update taskmill.replica set state = 'dead', epoch = epoch + 1`, each.database) // long ago
    const graphNamed = async (control: Control, name: string) =>
      ((await (await control.fetch(`/graphs?name=${name}`)).json()) as { graph_id: string }[])[0]!.graph_id
    for (const run of ['first', 'second']) {
      await using control = await each.replica(['--retention', '0', '--callback-policy', 'any'])
      const statuses = await settled(control)
      if (run === 'first') expect(statuses).toEqual(kept.statuses as Record<string, string>)
      const large = await control.fetch(`/graphs/${await graphNamed(control, 'large')}/tasks/large`)
      expect(((await large.json()) as { result: { stdout: string } }).result.stdout.length).toBeGreaterThan(100_000)
      const { runtimes } = (await (await control.fetch('/runtimes')).json()) as { runtimes: object[] }
      expect(runtimes.slice(1)).toMatchObject([...(kept.runtimes ?? [])])
      for (const list of ['pauses', 'schedules'] as const)
        expect(await (await control.fetch(`/${list}`)).json()).toMatchObject([...(kept[list] ?? [])])
      const rerun = await control.fetch(`/graphs/${kept.rerun_id}`)
      expect([rerun.status, ((await rerun.json()) as { state: string }).state]).toEqual([200, 'failed'])
      if (run === 'first') {
        await until(() => control.log.some(({ delivery_id }) => delivery_id === kept.callback_id))
        const path = `/graphs/${await graphNamed(control, 'asked')}/tasks/sure/approve`
        await until(
          () => control.fetch(path, { method: 'POST', body: '{"who": "ada"}' }).then(({ status }) => status),
          200,
        )
      }
      await until(
        () => statusesOf(control),
        (seen) => seen['asked/sure'] === 'success' && seen['asked/after'] === 'success',
      )
      expect(await control.stop()).toBe(0)
    }
    expect(await postgres.run('select version from taskmill.schema_version', each.database)).toEqual([
      { version: SCHEMA_VERSION },
    ])
  })

  test('a newer one is refused in one line, and stays as it is', async () => {
    using each = await cluster([postgres])
    {
      await using control = await each.replica()
      await control.submit([{ id: 'a', type: 'os', tool_name: 'noop' }])
      expect(await control.stop()).toBe(0)
    }
    await postgres.run('update taskmill.schema_version set version = version + 1', each.database)
    using dir = tempDir()
    const flags = ['--addr', '127.0.0.1:0', '--data-dir', join(dir.path, 'data')]
    const child = Bun.spawn([await builtProgram('taskmill-control'), ...flags], {
      env: testEnvironment({ SERVICE_DATABASE_URLS: postgres.url(each.database) }),
      ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    })
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect([await child.exited, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      `taskmill-control: the database has version ${SCHEMA_VERSION + 1} of the schema taskmill, and this program knows ${SCHEMA_VERSION}: install a newer taskmill-control\n`,
    )
    const rows = await postgres.run(
      'select version, (select count(*)::int from taskmill.graph) as graphs from taskmill.schema_version',
      each.database,
    )
    expect(rows).toEqual([{ version: SCHEMA_VERSION + 1, graphs: 1 }])
  })

  async function load(statements: string, database: string): Promise<void> {
    const sql = new SQL(postgres.url(database), { database, max: 1 })
    try {
      await sql.unsafe(statements).simple()
    } finally {
      await sql.close({ timeout: 0 })
    }
  }
})
