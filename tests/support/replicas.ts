/** Replicas of control on a database of their own, in a PostgreSQL of the test. */
import { afterAll, beforeAll, describe } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { type Control, startControl } from './control.ts'
import { mustPostgres } from './must-postgres.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

/** Short, so that a takeover is quick, and long enough for a machine on which a replica stalls for seconds. */
export const LEASE_MS = 5_000

/** For tests without a takeover: a busy machine must not make one. */
export const LONG_LEASE = ['--lease', '30s']

export interface Cluster extends Disposable {
  /** The primary. */
  readonly server: Postgres
  /** The name of the database. */
  readonly database: string
  /** Those of each replica. */
  readonly flags: readonly string[]
  replica(flags?: readonly string[], env?: Readonly<Record<string, string>>): Promise<Control>
}

/** The first of `servers` is the primary. */
export async function cluster(servers: readonly Postgres[]): Promise<Cluster> {
  await builtProgram('taskmill-control') // before replicas start together
  const temp = tempDir()
  const database = await servers[0]!.createDatabase()
  const file = join(temp.path, 'database') // an address with a password belongs in a file
  writeFileSync(file, servers.map((server) => `${server.url(database)}\n`).join(''))
  const common = ['--database-file', file, '--lease', `${LEASE_MS}ms`, '--shutdown-timeout', '0s']
  return {
    ...{ server: servers[0]!, database, flags: common },
    replica: (flags = [], env = {}) => startControl({ flags: [...common, ...flags], env }),
    [Symbol.dispose]: () => temp[Symbol.dispose](),
  }
}

/** Tests that share a server, each with a database of its own. They are skipped where there is no PostgreSQL; `title` then says so. */
export function describeReplicas(title: string, tests: (newCluster: () => Promise<Cluster>) => void): void {
  const missing = mustPostgres()
  describe.skipIf(missing !== undefined)(missing === undefined ? title : `${title} (${missing})`, () => {
    let postgres: Postgres
    beforeAll(async () => {
      postgres = await startPostgres()
    })
    afterAll(async () => {
      await postgres[Symbol.asyncDispose]()
    })
    tests(() => cluster([postgres]))
  })
}

export const healthOf = async (control: Control) =>
  (await (await control.fetch('/health')).json()) as {
    readonly replica: { readonly id: number; readonly graphs: number; readonly schedules_dir_of?: number }
  }

/** Waits until `control` owns so many graphs. */
export const owns = (control: Control, graphs: number) =>
  until(
    () => healthOf(control),
    ({ replica }) => replica.graphs === graphs,
    { patienceMs: 50_000 },
  )

/** The answer of `control` once it is no 503: a graph without an owner has one soon. */
export const answered = (control: Control, path: string, init?: RequestInit): Promise<Response> =>
  until(
    () => control.fetch(path, init),
    ({ status }) => status !== 503,
    { patienceMs: 50_000 },
  )
