/** Reads large results from their files, as JSON text or as values. */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { KeptResults } from '../log/keeper.ts'
import type { ResultFile } from '../rules/result-file.ts'

/**
 * Encodes `record` as JSON, with the result in `file` as its member `name`. Inserts the text of the file, because to
 * parse and format megabytes would block the event loop. If the result is lost, encodes the record that `reportLoss`
 * returns.
 */
export async function jsonWithStored<R extends object>(
  record: R,
  { name, file, reader }: { readonly name: string; readonly file: ResultFile; readonly reader: KeptResults },
  reportLoss: (lost: string) => R,
): Promise<string> {
  const result = await reader.read(file)
  if ('lost' in result) return JSON.stringify(reportLoss(result.lost))
  return `${JSON.stringify(record).slice(0, -1)},${JSON.stringify(name)}:${result.json}}`
}

/** The result in `file`. Throws 500 if it is lost. */
export async function storedValue(file: ResultFile, reader: KeptResults): Promise<unknown> {
  const result = await reader.read(file)
  if ('lost' in result) throw new ServiceError(500, result.lost)
  return JSON.parse(result.json)
}
