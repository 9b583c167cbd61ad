/** Rows that hold JSON. One that is damaged costs nobody but itself: it is told, left out, and stays in the database. */

import type { Log } from '../../../shared/logs/log.ts'
import { jsonOrUndefined } from '../../../shared/text/json.ts'

export interface JsonRow {
  /** Its key in the table. */
  readonly id: string
  readonly json: string
}

/** The values of those `rows` of `table` whose values are as they should be. */
export function readable<T>(
  rows: readonly JsonRow[],
  table: string,
  isSound: (value: unknown) => value is T,
  log: Pick<Log, 'error'>,
): T[] {
  return rows.flatMap(({ id, json }) => {
    const value = jsonOrUndefined(json)
    if (isSound(value)) return [value]
    log.error('a row of the database is unreadable and is left out', { table, row: id })
    return []
  })
}
