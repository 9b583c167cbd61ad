/**
 * Keeps a database of this version for the tests of later ones: `bun tests/support/keep-database.ts` writes
 * `tests/data/database/schema-<version>.sql`. Called once for each version of the schema, before a release; what is there is
 * never written again.
 *
 * A control service runs graphs that use every kind of record, and is killed.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SCHEMA_VERSION } from '../../control/log/postgres/shared-schema.ts'
import { postgresPrograms } from '../../scripts/postgres-programs.ts'
import type { Control } from './control.ts'
import { FIRST, KEPT_DATA, SECOND, settled } from './keep-data.ts'
import { startPostgres } from './postgres.ts'
import { cluster } from './replicas.ts'
import { testEnvironment } from './service.ts'
import { until } from './until.ts'

export const KEPT_DATABASES = join(KEPT_DATA, 'database')

/** What a database holds. */
export interface KeptDatabase {
  /** `graph name/task id` to status. */
  readonly statuses: Readonly<Record<string, string>>
  /** The graph that runs another one again. */
  readonly rerun_id: string
  /** The callback that waits for its delivery. */
  readonly callback_id: string
  /** Runtime services beside that of the flags. Absent in schemas before the fifth, which have none. */
  readonly runtimes?: readonly object[]
  /** Pauses of types, and schedules. Absent in schemas before the 14th. */
  readonly pauses?: readonly object[]
  readonly schedules?: readonly object[]
}

/** In the form of GET /runtimes. */
const RUNTIME = { name: 'gpu-1', url: 'http://127.0.0.1:1', labels: { gpu: '' } }

/** An address that nobody listens at. */
const NOBODY = 'http://127.0.0.1:1/'

const PAUSE = { type: 'os.http', why: 'kept' }

/** It ran once, because a caller asked for it. */
const SCHEDULE = { cron: '0 0 1 1 *', keep: 3, on_failure: { url: NOBODY } }
const SCHEDULED = { name: 'scheduled', tasks: [{ id: 'a', type: 'noop' }] }

async function keep(): Promise<void> {
  const target = join(KEPT_DATABASES, `schema-${SCHEMA_VERSION}`)
  if (existsSync(`${target}.sql`)) throw new Error(`${target}.sql is there already: a schema is written once`)
  await using postgres = await startPostgres()
  using each = await cluster([postgres])
  await using control = await each.replica(['--callback-policy', 'any'])
  const ids = new Map<string, string>()
  const isLocal = ({ tasks }: { readonly tasks: readonly object[] }) =>
    tasks.every((task) => !('type' in task && String(task.type).startsWith('runtime.')))
  for (const graph of [...FIRST.filter(isLocal), ...SECOND]) ids.set(graph.name, await submit(control, graph))
  const called = { name: 'called', scope: 'graph', callback: { url: NOBODY }, tasks: [{ id: 'a', type: 'noop' }] }
  const callbackId = `${await submit(control, called)}-graph_ended`
  await asked(control, 'PUT', '/schedules/yearly', { ...SCHEDULE, graph: SCHEDULED })
  await asked(control, 'POST', '/schedules/yearly/trigger')
  await asked(control, 'POST', '/pause', PAUSE)
  await settled(control)
  await until(
    async () => (await (await control.fetch('/schedules/yearly')).json()) as { last_success?: string },
    ({ last_success }) => last_success !== undefined,
  )
  const rerun = await control.fetch(`/graphs/${ids.get('failing')}/rerun`, { method: 'POST', body: '{}' })
  const { graph_id: rerun_id } = (await rerun.json()) as { graph_id: string }
  const removed = await submit(control, { name: 'removed', scope: 'graph', tasks: [{ id: 'a', type: 'noop' }] })
  const statuses = await settled(control)
  await control.fetch(`/graphs/${removed}`, { method: 'DELETE' })
  delete (statuses as Record<string, string>)['removed/a']
  await until(
    async () =>
      (await postgres.run(`select id from taskmill.callback where delivery is not null`, each.database)).length,
    1,
  )
  await asked(control, 'POST', '/runtimes', RUNTIME)
  await asked(control, 'POST', '/runtimes/gpu-1/drain', {})
  await control.stop('SIGKILL')
  const dump = Bun.spawnSync(
    [join(postgresPrograms()!, 'pg_dump'), '--schema=taskmill', '--no-owner', '--inserts', postgres.url(each.database)],
    { env: testEnvironment() },
  )
  if (dump.exitCode !== 0) throw new Error(`pg_dump failed: ${dump.stderr}`)
  const sql = dump.stdout.toString().replace(/^\\.*\n/gm, '') // commands of psql
  mkdirSync(KEPT_DATABASES, { recursive: true })
  writeFileSync(`${target}.sql`, sql)
  const kept: KeptDatabase = {
    ...{ statuses, rerun_id, callback_id: callbackId, runtimes: [{ ...RUNTIME, draining: true }] },
    pauses: [PAUSE],
    schedules: [{ name: 'yearly', cron: SCHEDULE.cron, keep: SCHEDULE.keep, running: 0, missed: 0 }],
  }
  writeFileSync(`${target}.json`, `${JSON.stringify(kept, null, 2)}\n`)
}

async function asked(control: Control, method: string, path: string, body?: object): Promise<void> {
  const response = await control.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
}

async function submit(control: Control, graph: object): Promise<string> {
  const response = await control.post(graph)
  if (response.status !== 202) throw new Error(await response.text())
  return ((await response.json()) as { graph_id: string }).graph_id
}

if (import.meta.main) await keep()
