/** Starts PgBouncer in front of a PostgreSQL, on loopback, in a directory of its own. Gone at the end of the block. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { asServerUser, giveToServerUser, PASSWORD, type Postgres } from './postgres.ts'
import { testEnvironment } from './service.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

export interface PgBouncer extends AsyncDisposable {
  /** Address of `database` through the pooler. */
  url(database?: string): string
}

export async function startPgBouncer(
  { port: serverPort }: Pick<Postgres, 'port'>,
  poolMode: 'session' | 'transaction',
): Promise<PgBouncer> {
  const temp = tempDir()
  const port = await freePort()
  const [config, users, log] = ['pgbouncer.ini', 'users', 'log'].map((name) => join(temp.path, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(
    config,
    `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = ${poolMode}
server_tls_sslmode = disable
server_login_retry = 1
`,
  )
  writeFileSync(users, `"postgres" "${PASSWORD}"\n`)
  for (const path of [temp.path, config, users]) giveToServerUser(path)
  const pooler = Bun.spawn(
    [...asServerUser, Bun.which('pgbouncer', { PATH: `${process.env.PATH}:/usr/sbin` })!, config],
    { ...{ cwd: '/', env: testEnvironment(), stdin: 'ignore' }, ...{ stdout: Bun.file(log), stderr: Bun.file(log) } },
  )
  const dispose = async () => {
    pooler.kill('SIGKILL')
    await pooler.exited
    temp[Symbol.dispose]()
  }
  try {
    await until(
      () => {
        if (pooler.exitCode !== null) throw new Error(`PgBouncer did not start: ${readFileSync(log, 'utf8')}`)
        return Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
          (socket) => {
            socket.end()
            return true
          },
          () => false,
        )
      },
      (isListening) => isListening,
    )
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    url: (database = 'postgres') => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/${database}`,
    [Symbol.asyncDispose]: dispose,
  }
}
