/**
 * A PostgreSQL of the bench, on loopback, with its own directory: durable, and otherwise as it comes. The one of the tests
 * has settings for small directories. Everything that the bench starts ends with its lifetime.
 */
import { appendFileSync, chmodSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { postgresPrograms } from '../../scripts/postgres-programs.ts'
import { asServerUser, giveToServerUser } from '../../scripts/postgres-server.ts'
import type { Lifetime } from '../lifetime.ts'
import { freePort } from '../server.ts'

/** Milliseconds for the first start. */
const START_MS = 60_000

/** Room for the writes of a run without a checkpoint in the middle of it. */
const SETTINGS = { shared_buffers: '256MB', max_wal_size: '4GB', max_connections: '100', jit: 'off' }

export interface DatabaseServer {
  /** A new database. Returns its address. */
  newDatabase(): Promise<string>
}

/** Undefined where PostgreSQL is not installed. */
export async function startDatabaseServer(lifetime: Lifetime): Promise<DatabaseServer | undefined> {
  const programs = postgresPrograms()
  if (programs === undefined) return undefined
  const directory = join(lifetime.dir, 'postgres')
  mkdirSync(directory, { mode: 0o700 })
  giveToServerUser(directory)
  chmodSync(lifetime.dir, 0o711) // so that the user of the server reaches its directory
  const env = { LC_ALL: 'C.UTF-8' }
  const made = Bun.spawnSync(
    [...asServerUser, join(programs, 'initdb'), '-D', directory, '-U', 'postgres', '--auth=trust', '-E', 'UTF8'],
    { cwd: '/', env: { ...process.env, ...env } },
  )
  if (made.exitCode !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const port = freePort()
  const own = { ...SETTINGS, listen_addresses: "'127.0.0.1'", unix_socket_directories: "''", port }
  const lines = Object.entries(own).map(([name, value]) => `${name} = ${value}\n`)
  appendFileSync(join(directory, 'postgresql.conf'), lines.join(''))
  lifetime.spawn([...asServerUser, join(programs, 'postgres'), '-D', directory], {
    ...{ cwd: '/', env: { ...process.env, ...env }, stderr: openSync(join(lifetime.dir, 'postgres.log'), 'w') },
  })
  const address = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  const run = async (statement: string) => {
    const sql = new SQL(address('postgres'), { database: 'postgres', max: 1 })
    try {
      await sql.unsafe(statement)
    } finally {
      await sql.close({ timeout: 0 })
    }
  }
  const end = performance.now() + START_MS
  while (
    !(await run('select 1').then(
      () => true,
      () => false,
    ))
  ) {
    if (performance.now() > end) throw new Error(`PostgreSQL did not start within ${START_MS} ms`)
    await Bun.sleep(50)
  }
  let databases = 0
  return {
    async newDatabase() {
      const name = `bench_${++databases}`
      await run(`create database ${name} template template0`)
      return address(name)
    },
  }
}
