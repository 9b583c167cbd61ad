/**
 * Starts a PostgreSQL for tests and the demo, on loopback, in a directory of its own, with a synchronous standby on
 * request. All of it is gone at the end of the block.
 *
 * The server refuses to run as root, so root starts it as the user of Debian's package. fsync stays on: it is about what
 * survives. WAL segments of 1 MiB make a new directory small.
 */
import {
  appendFileSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL, type Subprocess } from 'bun'
import { freePort as anyFreePort } from '../client/testing/free-port.ts'
import { postgresPrograms } from './postgres-programs.ts'
import { isAlive, until } from './until.ts'

/** Without our settings, but with the mark by which a test run finds what it has left. */
const serverEnvironment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  LC_ALL: 'C.UTF-8',
  ...(process.env.TASKMILL_TEST_RUN === undefined ? {} : { TASKMILL_TEST_RUN: process.env.TASKMILL_TEST_RUN }),
})

/** Of the superuser `postgres`. Tests look for it in whatever is printed. */
export const PASSWORD = 'pw-7Kq2vX'

const isRoot = process.getuid?.() === 0

/** What runs a command as a user who may run a server. */
export const asServerUser: readonly string[] = isRoot
  ? ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', '--']
  : []

/** Gives `path` to that user. */
export function giveToServerUser(path: string): void {
  if (!isRoot) return
  const entry = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((line) => line.startsWith('postgres:'))
  if (entry === undefined) throw new Error('no user postgres: install the package postgresql')
  const [, , uid, gid] = entry.split(':')
  chownSync(path, Number(uid), Number(gid))
}

/** Milliseconds for a start with recovery on a busy machine. */
const START_MS = 60_000

const SETTINGS = {
  fsync: 'on',
  max_connections: '60',
  shared_buffers: '16MB',
  max_wal_size: '64MB',
  min_wal_size: '2MB',
  wal_receiver_status_interval: '1s',
  wal_retrieve_retry_interval: '100ms',
  log_checkpoints: 'off',
  log_line_prefix: "'%m [%p] %e '",
  jit: 'off',
  recovery_init_sync_method: 'syncfs', // a sync of each file takes half a minute on a busy disk
}

export interface PostgresOptions {
  /** Starts a standby, too, and has the primary wait for it at each commit. */
  readonly standby?: boolean
  /** Settings in addition, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where its directory is made. Default: that of temporary files. */
  readonly parent?: string
  /** Chooses the ports. */
  readonly freePort?: () => Promise<number>
}

export class Postgres implements AsyncDisposable {
  readonly port: number
  readonly directory: string
  /** Set on a primary that was started with one. */
  standby: Postgres | undefined
  /** Its own, with all its servers. */
  readonly #temp: string | undefined
  #server: Subprocess | undefined
  #isFrozen = false
  #databases = 0

  constructor(directory: string, port: number, temp?: string) {
    this.directory = directory
    this.port = port
    this.#temp = temp
  }

  /** Address of `database` for the superuser. */
  url(database = 'postgres'): string {
    return `postgres://postgres:${PASSWORD}@127.0.0.1:${this.port}/${database}`
  }

  /** A new, empty database. Its address is the same on the standby, but for the port. */
  async createDatabase(): Promise<string> {
    const name = `test_${++this.#databases}`
    await this.run(`create database ${name} template template0`)
    return name
  }

  /** Runs `statements` one by one, on a connection of its own. Returns the rows of the last. */
  async run(
    statements: string | readonly string[],
    database = 'postgres',
  ): Promise<readonly Record<string, unknown>[]> {
    const sql = new SQL(this.url(), { database, max: 1 }) // PGDATABASE would beat the one in the address
    try {
      let rows: readonly Record<string, unknown>[] = []
      for (const statement of [statements].flat()) rows = [...(await sql.unsafe(statement))]
      return rows
    } finally {
      await sql.close({ timeout: 0 })
    }
  }

  /** Changes settings of the running server that need no restart. */
  async configure(settings: Readonly<Record<string, string>>): Promise<void> {
    const changes = Object.entries(settings).map(([name, value]) => `alter system set ${name} = '${value}'`)
    await this.run([...changes, 'select pg_reload_conf()'])
    for (const [name, value] of Object.entries(settings)) {
      await until(
        async () => (await this.run(`select setting from pg_settings where name = '${name}'`))[0]?.setting,
        (setting) => setting === value,
      )
    }
    // Commits wait for standbys once the checkpointer has read the setting, too, which it does before a checkpoint.
    if (settings.synchronous_standby_names) await this.run('checkpoint')
  }

  async start(): Promise<void> {
    const log = join(this.directory, 'server.log')
    this.#server = Bun.spawn([...asServerUser, program('postgres'), '-D', this.directory], {
      cwd: '/',
      env: serverEnvironment(),
      stdin: 'ignore',
      stdout: Bun.file(log),
      stderr: Bun.file(log),
    })
    await until(
      async () => {
        if (this.#server!.exitCode !== null) return readFileSync(log, 'utf8')
        return await this.run('select 1').then(
          () => undefined,
          (error: { errno?: string; code?: string }) => error.errno ?? error.code,
        )
      },
      (fault) => {
        if (this.#server!.exitCode !== null) throw new Error(`PostgreSQL did not start: ${fault}`)
        return fault === undefined
      },
      { patienceMs: START_MS },
    )
  }

  /** Kills every process of the server at once, as a machine that loses its power. */
  async kill(): Promise<void> {
    const pids = this.#stopForking()
    for (const pid of pids) signal(pid, 'SIGKILL')
    await this.#server!.exited
    for (const pid of pids)
      await until(
        () => isAlive(pid),
        (alive) => !alive,
      )
    this.#isFrozen = false
  }

  /** Stops every process of the server: connections stay, nothing answers. */
  freeze(): void {
    this.#isFrozen = true
    for (const pid of this.#stopForking()) signal(pid, 'SIGSTOP')
  }

  thaw(): void {
    this.#isFrozen = false
    for (const pid of this.#pids()) signal(pid, 'SIGCONT')
  }

  /** Makes a standby a primary. */
  async promote(): Promise<void> {
    await this.run('select pg_promote()')
    await until(
      async () => (await this.run('select pg_is_in_recovery() as is_standby'))[0]?.is_standby,
      (isStandby) => isStandby === false,
    )
  }

  /** Copies this server as a standby on `port`. From then on, each commit waits for it. */
  async addStandby(port: number): Promise<void> {
    const directory = `${this.directory}-standby`
    mkdirSync(directory, { mode: 0o700 })
    giveToServerUser(directory)
    const from = `host=127.0.0.1 port=${this.port} user=postgres password=${PASSWORD} application_name=standby`
    run(['pg_basebackup', '-D', directory, '-d', from, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'])
    appendFileSync(join(directory, 'postgresql.conf'), `port = ${port}\n`)
    this.standby = new Postgres(directory, port)
    await this.standby.start()
    await this.configure({ synchronous_standby_names: 'standby' })
    await until(
      async () => (await this.run('select sync_state from pg_stat_replication'))[0]?.sync_state,
      (state) => state === 'sync',
    )
  }

  /** Stops the server, so that it starts no further process. Returns all of its processes. */
  #stopForking(): number[] {
    const server = this.#server
    if (server !== undefined && server.exitCode === null && server.signalCode === null) signal(server.pid, 'SIGSTOP')
    return this.#pids()
  }

  /** The server and its processes. */
  #pids(): number[] {
    const server = this.#server
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return []
    return [server.pid, ...childrenOf(server.pid)]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.standby?.[Symbol.asyncDispose]()
    if (this.#isFrozen) this.thaw()
    this.#server?.kill('SIGQUIT') // the server ends its processes at once, and waits for them
    await this.#server?.exited
    if (this.#temp !== undefined) rmSync(this.#temp, { recursive: true, force: true })
  }
}

export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const { standby, settings, parent = tmpdir(), freePort = anyFreePort } = options
  const temp = realpathSync(mkdtempSync(join(parent, 'taskmill-')))
  try {
    giveToServerUser(temp)
    const directory = join(temp, 'primary')
    const passwordFile = join(temp, 'password')
    writeFileSync(passwordFile, PASSWORD)
    giveToServerUser(passwordFile)
    run([
      ...['initdb', '-D', directory, '-U', 'postgres', '--pwfile', passwordFile, '--no-sync', '--wal-segsize=1'],
      ...['--auth-host=scram-sha-256', '--auth-local=reject', '-E', 'UTF8', '--locale=C.UTF-8'],
    ])
    const port = await freePort()
    const own = { ...SETTINGS, listen_addresses: "'127.0.0.1'", unix_socket_directories: "''", port, ...settings }
    const lines = Object.entries(own).map(([name, value]) => `${name} = ${value}\n`)
    appendFileSync(join(directory, 'postgresql.conf'), lines.join(''))
    const postgres = new Postgres(directory, port, temp)
    try {
      await postgres.start()
      if (standby === true) await postgres.addStandby(await freePort())
      return postgres
    } catch (error) {
      await postgres[Symbol.asyncDispose]()
      throw error
    }
  } catch (error) {
    rmSync(temp, { recursive: true, force: true })
    throw error
  }
}

function program(name: string): string {
  const directory = postgresPrograms()
  if (directory === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql pgbouncer')
  return join(directory, name)
}

function run([name, ...args]: readonly [string, ...string[]] | readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([...asServerUser, program(name!), ...args], {
    cwd: '/',
    env: serverEnvironment(),
  })
  if (exitCode !== 0) throw new Error(`${name} failed: ${stderr}`)
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // it has just ended
  }
}

function childrenOf(parent: number): number[] {
  const isChild = (pid: string) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
    } catch {
      return false // gone
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isChild(name))
    .map(Number)
}
