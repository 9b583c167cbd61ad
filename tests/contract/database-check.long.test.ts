/** `taskmill-control database check` against real servers. Source: docs/cluster.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { testCertificate } from '../support/certificate.ts'
import { startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { giveToServerUser, PASSWORD, type Postgres, startPostgres } from '../support/postgres.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const missing = mustPostgres()

interface Report {
  readonly ok: boolean
  readonly servers: readonly Record<string, unknown>[]
  readonly findings: readonly { readonly code: string; readonly severity: string; readonly server?: string }[]
}

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const program = await builtProgram('taskmill-control')
  const child = Bun.spawn([program, 'database', ...args], {
    ...{ env: testEnvironment(env), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect(stdout + stderr).not.toContain(PASSWORD)
  return { exitCode: await child.exited, stdout, stderr }
}

/** The report of these addresses. */
async function check(...urls: string[]) {
  const { exitCode, stdout, stderr } = await run([
    'check',
    '--timeout',
    '30s',
    ...urls.flatMap((url) => ['--database', url]),
  ])
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^\{[^\n]*\}\n$/)
  const report = JSON.parse(stdout) as Report
  expect(exitCode).toBe(report.ok ? 0 : 1)
  return { report, codes: report.findings.map(({ code }) => code) }
}

describe.skipIf(missing !== undefined)(`database check${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres[Symbol.asyncDispose]())

  /** A user with that password who owns nothing, and a database. */
  async function createUser(name: string): Promise<string> {
    const database = await postgres.createDatabase()
    await postgres.run(`create role ${name} login password '${PASSWORD}'`)
    return `postgres://${name}:${PASSWORD}@127.0.0.1:${postgres.port}/${database}`
  }

  test('a lone server is a choice', async () => {
    const { report, codes } = await check(postgres.url())
    expect(report.ok).toBe(true)
    expect(codes).toEqual(['no_synchronous_standby'])
    expect(report.servers).toEqual([
      {
        url: `postgres://postgres@127.0.0.1:${postgres.port}/postgres`,
        ...{ role: 'primary', version: expect.stringMatching(/^\d+\.\d+$/), is_encrypted: false },
        ...{ is_transaction_pooled: false, round_trip_ms: expect.any(Number) },
      },
    ])
    for (const finding of report.findings) expect(finding).toMatchObject({ remedy: expect.stringMatching(/./) })
  })

  test('a file with a password that others may read is told', async () => {
    using temp = tempDir()
    const file = join(temp.path, 'database')
    writeFileSync(file, `${await createUser('in_a_file')}\n`)
    const codes = async () => {
      const { stdout } = await run(['check', '--timeout', '30s', '--database-file', file])
      return (JSON.parse(stdout) as Report).findings.map(({ code, severity }) => `${severity} ${code}`)
    }
    for (const mode of [0o644, 0o640]) {
      chmodSync(file, mode)
      expect(await codes()).toContain('warning open_file')
    }
    chmodSync(file, 0o600)
    expect(await codes()).not.toContain('warning open_file')
    writeFileSync(file, `postgres://postgres@127.0.0.1:${postgres.port}/postgres\n`)
    chmodSync(file, 0o644)
    expect(await codes()).not.toContain('warning open_file')
  })

  test('the environment of the client library changes nothing', async () => {
    const env = {
      SERVICE_DATABASE_URLS: postgres.url(),
      PGDATABASE: 'other',
      PGHOST: 'x',
      DATABASE_URL: 'postgres://x/y',
    }
    const { exitCode, stdout } = await run(['check'], env)
    expect(stdout).toContain('"role":"primary"')
    expect(exitCode).toBe(0)
  })

  test('a file has the addresses, one a line', async () => {
    using temp = tempDir()
    const path = join(temp.path, 'addresses')
    writeFileSync(path, `# the primary\n\n  ${postgres.url()}\r\n`)
    const { exitCode, stdout } = await run(['check', '--database-file', path], { SERVICE_DATABASE_URLS: 'nonsense' })
    expect(stdout).toContain('"role":"primary"')
    expect(exitCode).toBe(0)
  })

  test('faults of the first connection', async () => {
    const at = (user: string, password: string, database: string) =>
      `postgres://${user}:${password}@127.0.0.1:${postgres.port}/${database}`
    const closed = `postgres://postgres:${PASSWORD}@127.0.0.1:${await freePort()}/postgres`
    const { report } = await check(
      at('postgres', 'wrong', 'postgres'),
      at('postgres', PASSWORD, 'missing'),
      closed,
      `postgres://postgres:${PASSWORD}@no..host/postgres`,
      `${postgres.url('template1')}?sslmode=require`,
    )
    expect(report.findings.map(({ code, server }) => [code, server?.replace(/.*@/, '')])).toEqual([
      ['wrong_password', `127.0.0.1:${postgres.port}/postgres`],
      ['no_database', `127.0.0.1:${postgres.port}/missing`],
      ['unreachable', closed.replace(/.*@/, '')],
      ['unreachable', 'no..host:5432/postgres'],
      ['no_tls', `127.0.0.1:${postgres.port}/template1`],
    ])
    expect(JSON.stringify(report)).toContain('the name no..host does not resolve')
    expect(report.ok).toBe(false)
  })

  test('a server that accepts connections and stays silent', async () => {
    postgres.freeze()
    try {
      const { exitCode, stdout } = await run(['check', '--database', postgres.url(), '--timeout', '300ms'])
      expect(JSON.parse(stdout).findings).toEqual([expect.objectContaining({ code: 'no_answer' })])
      expect(exitCode).toBe(1)
    } finally {
      postgres.thaw()
    }
  })

  test('rights: to create the schema, to use it, and its tables', async () => {
    const url = await createUser('guest')
    const database = url.replace(/.*\//, '')
    expect((await check(url)).codes).toEqual(['missing_rights', 'no_synchronous_standby'])
    await postgres.run(`grant create on database ${database} to guest`)
    expect((await check(url)).codes).toEqual(['no_synchronous_standby'])
    await postgres.run(
      [
        ...['create schema taskmill', 'create table taskmill.frame (graph bigint)'],
        ...['create table taskmill.schema_version (version int)', 'insert into taskmill.schema_version values (1)'],
      ],
      database,
    )
    const { report } = await check(url)
    const { remedy } = report.findings[0] as unknown as { remedy: string }
    expect(report.findings[0]).toMatchObject({ code: 'missing_rights', severity: 'error' })
    await postgres.run('grant usage, create on schema taskmill to guest', database)
    expect((await check(url)).report.findings[0]).toMatchObject({
      ...{ code: 'missing_rights', message: 'the user guest may not use the tables frame, schema_version' },
    })
    await postgres.run(remedy.split('; '), database)
    expect((await check(url)).codes).toEqual(['no_synchronous_standby'])
  })

  test('tables of a newer version', async () => {
    const name = await postgres.createDatabase()
    await postgres.run(
      [
        'create schema taskmill',
        'create table taskmill.schema_version (version int)',
        'insert into taskmill.schema_version values (999)',
      ],
      name,
    )
    const { report, codes } = await check(postgres.url(name))
    expect(codes).toEqual(['newer_schema', 'no_synchronous_standby'])
    expect(report.ok).toBe(false)
    await postgres.run('update taskmill.schema_version set version = 1', name)
    expect((await check(postgres.url(name))).codes).toEqual(['no_synchronous_standby'])
  })

  test('a schema of our name that belongs to another program', async () => {
    const name = await postgres.createDatabase()
    await postgres.run(['create schema taskmill', 'create table taskmill.mine (id int)'], name)
    const starts = async () =>
      await startControl({ flags: ['--database', postgres.url(name)] }).then(String, (error) => String(error))
    const { report, codes } = await check(postgres.url(name))
    expect(codes).toEqual(['foreign_schema', 'no_synchronous_standby'])
    expect(report.findings[0]).toMatchObject({
      message: 'the schema taskmill belongs to another program (it has mine)',
      remedy: 'use another database, or rename that schema: alter schema taskmill rename to NAME',
    })
    expect(await starts()).toContain('the schema taskmill of the database belongs to another program (it has mine)')
    await postgres.run('create table taskmill.schema_version (version text)', name)
    expect(await starts()).toContain('belongs to another program (its table schema_version has no version)')
    await postgres.run('alter schema taskmill rename to theirs', name)
    expect((await check(postgres.url(name))).codes).toEqual(['no_synchronous_standby'])
  })

  test('a time limit of statements, also one that the check itself meets', async () => {
    const url = await createUser('hasty')
    const database = url.replace(/.*\//, '')
    const limit = (to: string) => postgres.run(`alter role hasty set statement_timeout = '${to}'`)
    await postgres.run(`grant create on database ${database} to hasty`)
    await limit('1min')
    const { report, codes } = await check(url)
    expect(codes).toEqual(['statement_timeout', 'no_synchronous_standby'])
    const { remedy } = report.findings[0] as unknown as { remedy: string }
    await limit('1ms')
    expect((await check(url)).report.findings).toMatchObject([{ code: 'statement_timeout', severity: 'error', remedy }])
    await postgres.run(remedy)
    expect((await check(url)).codes).toEqual(['no_synchronous_standby'])
  })

  test('settings of the role', async () => {
    const url = await createUser('careless')
    const database = url.replace(/.*\//, '')
    await postgres.run([
      `grant create on database ${database} to careless`,
      'alter role careless set synchronous_commit = off',
      'alter role careless set default_transaction_read_only = on',
      'alter role careless connection limit 4',
    ])
    const { report } = await check(url)
    expect(report.findings.map(({ code, severity }) => [code, severity])).toEqual([
      ['read_only', 'error'],
      ['few_connections', 'warning'],
      ['synchronous_commit_off', 'warning'],
      ['no_synchronous_standby', 'warning'],
    ])
  })

  test('a user who may not see the standbys', async () => {
    const url = await createUser('blind')
    await postgres.run(`grant create on database ${url.replace(/.*\//, '')} to blind`)
    await postgres.configure({ synchronous_standby_names: 'nobody' })
    try {
      expect((await check(url)).codes).toEqual(['synchronous_standby_away'])
    } finally {
      await postgres.configure({ synchronous_standby_names: '' })
    }
  })

  test('a database that is not UTF-8', async () => {
    await postgres.run(`create database latin encoding 'LATIN1' locale 'C' template template0`)
    expect((await check(postgres.url('latin'))).codes).toEqual(['not_utf8', 'no_synchronous_standby'])
  })

  test('PgBouncer in transaction mode needs prepare=false, in session mode nothing', async () => {
    await using transaction = await startPgBouncer(postgres, 'transaction')
    await using session = await startPgBouncer(postgres, 'session')
    expect((await check(transaction.url())).codes).toEqual(['transaction_pooler', 'no_synchronous_standby'])
    expect((await check(`${transaction.url()}?prepare=false`)).codes).toEqual(['no_synchronous_standby'])
    expect((await check(session.url())).codes).toEqual(['no_synchronous_standby'])
  })

  test('fsync and full_page_writes', async () => {
    await postgres.configure({ fsync: 'off', full_page_writes: 'off' })
    try {
      const { report } = await check(postgres.url())
      expect(report.findings.map(({ code, severity }) => [code, severity])).toEqual([
        ['fsync_off', 'error'],
        ['full_page_writes_off', 'warning'],
        ['no_synchronous_standby', 'warning'],
      ])
    } finally {
      await postgres.configure({ fsync: 'on', full_page_writes: 'on' })
    }
  })

  test('primary and standby', async () => {
    await using primary = await startPostgres({ standby: true })
    const standby = primary.standby!
    const { report } = await check(standby.url(), primary.url())
    expect(report.findings).toEqual([])
    expect(report.servers.map(({ role }) => role)).toEqual(['standby', 'primary'])
    expect((await check(standby.url())).codes).toEqual(['no_primary'])
    expect((await check(primary.url(), postgres.url())).codes).toEqual(['no_synchronous_standby', 'different_clusters'])
    await primary.run(['create role watcher login', `alter role watcher password '${PASSWORD}'`])
    await primary.run('grant create on database postgres to watcher')
    const watching = primary.url().replace('postgres:pw', 'watcher:pw')
    expect((await check(watching)).codes).toEqual(['standbys_not_visible'])
    await standby.promote()
    expect((await check(standby.url(), primary.url())).codes).toContain('two_primaries')
  })

  test('TLS', async () => {
    using temp = tempDir()
    chmodSync(temp.path, 0o755)
    const { authorityPath } = testCertificate(temp.path)
    const [cert, key] = [join(temp.path, 'server.pem'), join(temp.path, 'server.key')]
    for (const path of [cert, key]) giveToServerUser(path)
    chmodSync(key, 0o600)
    await using server = await startPostgres({
      settings: { ssl: 'on', ssl_cert_file: `'${cert}'`, ssl_key_file: `'${key}'` },
    })
    const encrypted = async (url: string) => (await check(url)).report.servers[0]!.is_encrypted
    expect(await encrypted(server.url())).toBe(true)
    expect(await encrypted(`${server.url()}?sslmode=disable`)).toBe(false)
    expect(await encrypted(`${server.url()}?sslrootcert=${authorityPath}`)).toBe(true)
    expect((await check(`${server.url()}?sslmode=verify-full`)).codes).toEqual(['untrusted_certificate'])
    const byName = server.url().replace('127.0.0.1', 'localhost')
    expect((await check(`${byName}?sslrootcert=${authorityPath}`)).codes).toEqual(['untrusted_certificate'])
    expect(await encrypted(`${byName}?sslrootcert=${authorityPath}&sslmode=verify-ca`)).toBe(true)
  })
})

describe('usage errors are one line without the password', () => {
  const url = `postgres://app:${PASSWORD}@127.0.0.1/mill`
  test.each([
    [[], 'database check'],
    [['look'], 'database check'],
    [['check'], 'no database to check'],
    [['check', url], 'give addresses with --database'],
    [['check', '--database', `${url}?sslmode=on`], 'sslmode must be'],
    [['check', '--database', `${url}?sslrootcert=/no/such/file`], 'cannot read sslrootcert=/no/such/file'],
    [['check', '--database', `${url},${url}`], 'twice'],
    [['check', '--database', `${url},`], 'address 2'],
    [['check', '--databse', url], 'did you mean --database?'],
    [['check', `---database=${url}`], 'unknown flag'],
    [['check', '--database-file', '/no/such/file'], 'cannot read the addresses in /no/such/file: ENOENT'],
    [['check', '--database-file', '/'], 'must be a file'],
    [['check', '--database-file', '/dev/null'], 'must be a file'],
    [['check', '--database', url, '--timeout', '5'], '--timeout'],
  ])('%j', async (args, expected) => {
    const { exitCode, stdout, stderr } = await run(args)
    expect(stderr).toMatch(/^taskmill-control: [^\n]+\n$/)
    expect(stderr).toContain(expected)
    expect(stdout).toBe('')
    expect(exitCode).toBe(2)
  })
})

test('help names the flags', async () => {
  for (const args of [['--help'], ['check', '--help']]) {
    const { exitCode, stdout } = await run(args)
    expect(stdout).toContain('--database-file')
    expect(exitCode).toBe(0)
  }
})
