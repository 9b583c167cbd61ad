/**
 * `database.json`: a data directory whose service keeps its work in a database, and where that is.
 *
 * Without `--database`, such a directory has no graphs. A service that was started so by mistake would answer as if all of
 * them were gone.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'
import { writeRemedy } from '../../shared/files/write-remedy.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'

const markPath = (dataDir: string): string => join(dataDir, 'database.json')

/** Notes the database, as `db-1.internal:5432/mill` for each server. Throws `UsageError`. */
export function markDatabase(dataDir: string, places: readonly string[]): void {
  const path = markPath(dataDir)
  if (existsSync(path) && placesIn(path).join() === places.join()) return
  try {
    replaceFileNow(path, `${JSON.stringify({ database: places })}\n`)
  } catch (error) {
    throw new UsageError(`cannot write ${path}: ${messageOf(error)} (${writeRemedy(error)})`)
  }
}

/** For a start without a database. Throws `UsageError` if the directory was last used with one. */
export function refuseDatabaseDirectory(dataDir: string): void {
  const path = markPath(dataDir)
  if (!existsSync(path)) return
  const places = placesIn(path)
  const where = places.length === 0 ? '' : ` (${places.join(', ')})`
  throw new UsageError(
    `the data directory ${dataDir} was last used with a database${where}, which has its graphs: give --database or --database-file, or another directory with --data-dir (or remove ${path} to begin there without them)`,
  )
}

/** None if the file is damaged. Its existence is enough for a refusal. */
function placesIn(path: string): readonly string[] {
  const mark = jsonOrUndefined(readFileSync(path, 'utf8'))
  const places = isObject(mark) ? mark.database : undefined
  return Array.isArray(places) ? places.filter((place) => typeof place === 'string') : []
}
