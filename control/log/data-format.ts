/**
 * The format of a data directory, so that an older service refuses the files of a newer one.
 *
 * Without a mark an older service would take a new kind of journal frame for a torn tail and cut it off. `format.json` names
 * the format of the directory and the version that raised it. A directory without that file has format 1. The number is raised by a
 * change after which older services must not read the directory; a field that they may ignore does not raise it.
 *
 * The journal of a newer format continues the files of an older one until a pack has taken their place. Until then,
 * `format.json` also names the older format.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'
import { writeRemedy } from '../../shared/files/write-remedy.ts'
import { VERSION } from '../../shared/process/version.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { refuseAccess, refuseFile } from './unreadable-file.ts'

/** The format that this service writes: from 10 on, graphs have tenants, which an older service would show to everybody. It reads all formats up to it. */
export const DATA_FORMAT = 10

/** The format from which on packs hold what the journal no longer has. Before, the state file did. */
export const PACKS_FORMAT = 2

/** The format from which on the log holds notes. Before, files beside it did (`side-files.ts`). */
export const NOTES_FORMAT = 3

/** The format from which on a note is the upper bound of the numbers of changes. Before, a file beside the log was. */
export const NUMBERS_FORMAT = 4

/** The format of a directory without `format.json`. */
const FIRST_FORMAT = 1

const formatPath = (dataDir: string): string => join(dataDir, 'format.json')

interface Format {
  readonly format: number
  /** The version that raised it. */
  readonly written_by: string
  /** The format of the files that the journal continues. Absent if it is the same. */
  readonly from?: number
}

/** The format of the files that the journal of `dataDir` continues. Throws `UsageError` if that is newer than `known`. Changes nothing. */
export function refuseNewerFormat(dataDir: string, known = DATA_FORMAT): number {
  const { format, written_by, from = format } = formatOf(dataDir)
  if (format <= known) return from
  throw new UsageError(
    `the data directory ${dataDir} was written by a newer taskmill-control (${written_by}, its format is ${format}, this one knows ${known}): use that one, or choose another directory with --data-dir`,
  )
}

/** Marks `dataDir` with the newest format. Called before a frame is written that an older service would misread. */
export function beginFormat(dataDir: string): void {
  const { format, from = format } = formatOf(dataDir)
  if (format < DATA_FORMAT) writeFormat(dataDir, { format: DATA_FORMAT, written_by: VERSION, from })
}

/** Marks `dataDir` with `format`, unless it has that already. Called before files are removed that an older format needs. */
export function raiseFormat(dataDir: string, format = DATA_FORMAT): void {
  const known = formatOf(dataDir)
  if (known.format > format || (known.format === format && known.from === undefined)) return
  writeFormat(dataDir, { format, written_by: VERSION })
}

function writeFormat(dataDir: string, format: Format): void {
  const path = formatPath(dataDir)
  try {
    replaceFileNow(path, `${JSON.stringify(format)}\n`)
  } catch (error) {
    throw new UsageError(`cannot write ${path}: ${messageOf(error)} (${writeRemedy(error)})`)
  }
}

function formatOf(dataDir: string): Format {
  const path = formatPath(dataDir)
  if (!existsSync(path)) return { format: FIRST_FORMAT, written_by: '' }
  const value = jsonOrUndefined(readOrRefuse(path))
  if (isFormat(value)) return value
  throw refuseFile('format file', path)('it is no object with a format and the version that wrote it')
}

function readOrRefuse(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw refuseAccess('format file', path, error)
  }
}

const isFormat = (value: unknown): value is Format =>
  isObject(value) &&
  Number.isSafeInteger(value.format) &&
  Number(value.format) >= FIRST_FORMAT &&
  typeof value.written_by === 'string' &&
  (value.from === undefined || Number.isSafeInteger(value.from))
