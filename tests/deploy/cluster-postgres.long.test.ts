/**
 * Goal: the scripts of deploy/cluster/postgres/ make a primary and a synchronous standby that can take its place. Method:
 * they run as their images run them, on servers of the test.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresPrograms } from '../../scripts/postgres-programs.ts'
import { DEPLOY } from '../support/deploy-files.ts'
import { freePort } from '../support/free-port.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { asServerUser, giveToServerUser, PASSWORD, Postgres, startPostgres } from '../support/postgres.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()

test.skipIf(missing !== undefined)(
  `primary.sh and standby.sh make a pair that survives its primary${missing === undefined ? '' : ` (${missing})`}`,
  async () => {
    await using primary = await startPostgres()
    using temp = tempDir()
    giveToServerUser(temp.path)
    const script = async (name: string) => {
      const path = join(temp.path, name)
      writeFileSync(path, await Bun.file(join(DEPLOY, 'cluster/postgres', name)).text())
      giveToServerUser(path)
      return path
    }
    const env = testEnvironment({
      PATH: `${postgresPrograms()}:${process.env.PATH}`,
      LC_ALL: 'C.UTF-8',
      POSTGRES_USER: 'postgres',
      POSTGRES_PASSWORD: PASSWORD,
      POSTGRES_DB: 'postgres',
    })
    const atPrimary = { ...env, PGHOST: '127.0.0.1', PGPORT: `${primary.port}`, PGPASSWORD: PASSWORD }
    const made = Bun.spawnSync([...asServerUser, 'sh', await script('primary.sh')], {
      ...{ cwd: '/', env: { ...atPrimary, PGDATA: primary.directory } },
    })
    expect([made.exitCode, made.stderr.toString()]).toEqual([0, ''])

    const data = join(temp.path, 'standby')
    mkdirSync(data, { mode: 0o700 })
    giveToServerUser(data)
    const port = await freePort()
    const own = ['-p', `${port}`, '-c', 'unix_socket_directories=']
    const server = Bun.spawn([...asServerUser, 'sh', await script('standby.sh'), ...own], {
      ...{ cwd: '/', stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
      env: { ...env, PGDATA: data, PRIMARY_HOST: '127.0.0.1', PRIMARY_PORT: `${primary.port}` },
    })
    const standby = new Postgres(data, port)
    try {
      await primary.run('select pg_reload_conf()') // the image starts the server again after its scripts
      await until(
        async () => (await primary.run('select sync_state from pg_stat_replication'))[0]?.sync_state,
        (state) => state === 'sync',
        { patienceMs: 60_000 },
      )
      await primary.run(['create table t (n int)', 'insert into t values (7)'])
      await until(
        () => standby.run('select 1').catch(() => undefined),
        (rows) => rows !== undefined, // it follows the primary before it takes connections
      )
      await primary.kill()
      await standby.promote()
      expect(await standby.run(['insert into t values (8)', 'select n from t order by n'])).toEqual([
        { n: 7 },
        { n: 8 },
      ])
    } finally {
      server.kill('SIGQUIT')
      await server.exited
    }
  },
  120_000,
)
