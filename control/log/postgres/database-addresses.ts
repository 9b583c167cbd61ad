/** The addresses of the database, from the command line, the environment or a file. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { systemCodeOf, UsageError } from '../../../shared/contract/errors.ts'
import { ACCESS_OF_OTHERS } from '../../../shared/http/token.ts'
import { type DatabaseUrl, parseDatabaseUrls } from './database-url.ts'

/** Bytes of a file with addresses. A larger file is another one. */
const MAX_FILE_BYTES = 64 * 1024

export interface AddressSettings {
  readonly database: readonly string[]
  /** Path of the file; empty for none. */
  readonly databaseFile: string
}

/** The addresses, none if there is no setting. Throws `UsageError`, which holds no password. */
export function databaseAddresses({ database, databaseFile }: AddressSettings): DatabaseUrl[] {
  const urls =
    databaseFile === ''
      ? parseDatabaseUrls(database, '--database (SERVICE_DATABASE_URLS)')
      : parseDatabaseUrls(linesOf(databaseFile), databaseFile)
  for (const { caFile, shown } of urls) if (caFile !== undefined) assertReadable(caFile, shown)
  return urls
}

/** The file of the addresses, if other users have rights to it and an address has a password. */
export function openDatabaseFile(
  { databaseFile }: Pick<AddressSettings, 'databaseFile'>,
  urls: readonly DatabaseUrl[],
): string | undefined {
  if (databaseFile === '' || urls.every(({ password }) => password === '')) return undefined
  return (statSync(databaseFile).mode & ACCESS_OF_OTHERS) === 0 ? undefined : databaseFile
}

function linesOf(path: string): string[] {
  const lines = readAddresses(path)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  if (lines.length === 0) throw new UsageError(`${path} has no address`)
  return lines
}

function readAddresses(path: string): string {
  try {
    const stat = statSync(path)
    if (!stat.isFile() || stat.size > MAX_FILE_BYTES) {
      throw new UsageError(`${path} must be a file of at most ${MAX_FILE_BYTES} bytes (--database-file)`)
    }
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof UsageError) throw error
    const cause = systemCodeOf(error) ?? error
    throw new UsageError(`cannot read the addresses in ${path}: ${cause} (give another file with --database-file)`)
  }
}

function assertReadable(caFile: string, shown: string): void {
  try {
    accessSync(caFile, constants.R_OK)
  } catch (error) {
    throw new UsageError(`cannot read sslrootcert=${caFile} of ${shown}: ${systemCodeOf(error) ?? error}`)
  }
}
