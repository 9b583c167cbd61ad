/**
 * Opens connections with Bun's client for PostgreSQL.
 *
 * What Bun would read from the environment (`DATABASE_URL`, `PGDATABASE` and others) counts for less than its options, so
 * each of them is given. Nothing relies on settings of a session, nor on startup parameters: PgBouncer in transaction mode
 * refuses those and gives each transaction another session. Statements name their schema and set what they need themselves.
 *
 * Bun closes a connection in the middle of a query when `idleTimeout` or `maxLifetime` ends. Both stay off. Its client has
 * no time limit for queries, and against a server that is frozen `cancel()` does nothing. Only `close({ timeout: 0 })` ends
 * such a query, with all others of the pool.
 */
import { SQL } from 'bun'
import type { DatabaseUrl } from './database-url.ts'

export interface SqlOptions {
  /** Connections at most. Bun opens all of them at the first query. */
  readonly max: number
  /** Milliseconds for opening a connection. Rounded up to seconds. */
  readonly connectTimeoutMs: number
  /** Shown in pg_stat_activity. The only startup parameter, which every pooler knows. */
  readonly applicationName?: string
}

export function openSql(url: DatabaseUrl, { max, connectTimeoutMs, applicationName = 'taskmill' }: SqlOptions): SQL {
  const { hostname, port, username, password, database, sslMode, caFile, isPreparing } = url
  return new SQL({
    url: `postgres://host/?sslmode=${sslMode}`,
    ...{ adapter: 'postgres', hostname, port, username, password, database, max, prepare: isPreparing },
    ...(caFile !== undefined && { tls: { ca: Bun.file(caFile) } }),
    ...{ idleTimeout: 0, maxLifetime: 0, connectionTimeout: Math.ceil(connectTimeoutMs / 1_000) },
    connection: { application_name: applicationName },
  })
}

/** Ends all connections at once, whatever they do. Never throws. */
export async function closeSql(sql: SQL): Promise<void> {
  try {
    await sql.close({ timeout: 0 })
  } catch {
    // A connection that is just being opened may fail.
  }
}
