/** Where PostgreSQL is on this machine. */
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
