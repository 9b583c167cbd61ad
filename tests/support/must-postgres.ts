/** Whether tests can start a PostgreSQL. Debian's packages are `postgresql` and `pgbouncer`. */
import { postgresPrograms } from '../../scripts/postgres-programs.ts'

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
