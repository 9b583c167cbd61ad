/** Results that are too large for memory: reads them from their files, as JSON text or as values. */
import { ServiceError } from '../../shared/errors.ts'
import type { ResultFile } from '../graph/result-file.ts'
import type { ResultFiles } from '../journal/result-files.ts'

export type ResultReader = Pick<ResultFiles, 'read'>

/**
 * The JSON of `record` with the result in `file` as its member `name`. The text of the file is inserted as it is:
 * parsing and formatting megabytes would block the event loop. For a lost result, the JSON of what `reportLoss`
 * returns.
 */
export async function jsonWithStored<R extends object>(
  record: R,
  { name, file, reader }: { readonly name: string; readonly file: ResultFile; readonly reader: ResultReader },
  reportLoss: (lost: string) => R,
): Promise<string> {
  const result = await reader.read(file)
  if ('lost' in result) return JSON.stringify(reportLoss(result.lost))
  return `${JSON.stringify(record).slice(0, -1)},${JSON.stringify(name)}:${result.json}}`
}

/** The result in `file`. Throws 500 if it is lost. */
export async function storedValue(file: ResultFile, reader: ResultReader): Promise<unknown> {
  const result = await reader.read(file)
  if ('lost' in result) throw new ServiceError(500, result.lost)
  return JSON.parse(result.json)
}
