/** A task as the JSON of its record; a result that lies in a file is put in. */

import type { Task } from '../graph/graph.ts'
import { taskRecord } from '../graph/record.ts'
import { ResultFile, type StoredResult } from '../graph/result-file.ts'
import type { ResultFiles } from '../journal/result-files.ts'

/** All but the result is of the moment of the call. */
export function recordJson(task: Task, resultFiles: Pick<ResultFiles, 'read'>): string | Promise<string> {
  const { result } = task
  return result instanceof ResultFile ? withResult(task, resultFiles.read(result)) : JSON.stringify(taskRecord(task))
}

/** A lost result is reported in `error`, after the task's own. */
async function withResult(task: Task, reading: Promise<StoredResult>): Promise<string> {
  const { result_file, ...record } = taskRecord(task)
  const result = await reading
  if ('json' in result) return `${JSON.stringify(record).slice(0, -1)},"result":${result.json}}`
  const { error } = record
  return JSON.stringify({ ...record, error: error === undefined ? result.lost : `${error}; ${result.lost}` })
}
