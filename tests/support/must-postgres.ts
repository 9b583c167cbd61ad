/** Whether tests can start a PostgreSQL. Debian's packages are `postgresql` and `pgbouncer`. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Where Debian puts each version of the server; its programs are not in PATH. */
const DEBIAN_ROOT = '/usr/lib/postgresql'

/** Directory with initdb, postgres and pg_basebackup: the newest of Debian's, else the one in PATH. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN_ROOT) ? readdirSync(DEBIAN_ROOT).filter((name) => /^\d+$/.test(name)) : []
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0]
  if (newest !== undefined) return join(DEBIAN_ROOT, newest, 'bin')
  return Bun.which('initdb')?.replace(/\/initdb$/, '')
}

/** Returns the reason why PostgreSQL cannot be tested here, or throws if TASKMILL_MUST_POSTGRES=1. */
export function mustPostgres(): string | undefined {
  const missing = [
    ...(postgresPrograms() === undefined ? ['postgresql'] : []),
    ...(Bun.which('pgbouncer', { PATH: `${process.env.PATH}:/usr/sbin` }) === null ? ['pgbouncer'] : []),
  ]
  if (missing.length === 0) return undefined
  const reason = `${missing.join(' and ')} not installed`
  if (process.env.TASKMILL_MUST_POSTGRES === '1') throw new Error(`PostgreSQL cannot be tested: ${reason}`)
  return reason
}
