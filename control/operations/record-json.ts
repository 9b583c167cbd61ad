/** Writes records as JSON, with results from files. All fields but the result have their values of the moment of the call. */
import type { Waiting } from '../../shared/contract/waiting.ts'
import type { Task } from '../graph/graph.ts'
import { handleRecord } from '../graph/handle.ts'
import { taskRecord } from '../graph/record.ts'
import { ResultFile } from '../graph/result-file.ts'
import { jsonWithStored, type ResultReader } from './stored-result.ts'

/**
 * The record of a task. A lost result is reported in `error`, after the task's own error. `waiting` says why it does not
 * execute; only a task without a result waits.
 */
export function recordJson(task: Task, reader: ResultReader, waiting?: Waiting): string | Promise<string> {
  const { result } = task
  if (waiting !== undefined) return JSON.stringify({ ...taskRecord(task), waiting })
  if (!(result instanceof ResultFile)) return JSON.stringify(taskRecord(task))
  const { result_file, ...record } = taskRecord(task)
  return jsonWithStored(record, { name: 'result', file: result, reader }, (lost) => ({
    ...record,
    error: joined(record.error, lost),
  }))
}

/** The record of a call of an MCP tool. A lost result is reported in `error`, after the call's own error. */
export function callJson(task: Task, reader: ResultReader): string | Promise<string> {
  const { result } = task
  const record = handleRecord(task)
  if (!(result instanceof ResultFile)) return JSON.stringify(record)
  return jsonWithStored(record, { name: 'output', file: result, reader }, (lost) => ({
    ...record,
    error: { code: 'internal' as const, ...record.error, message: joined(record.error?.message, lost) },
  }))
}

const joined = (error: string | undefined, lost: string): string => (error === undefined ? lost : `${error}; ${lost}`)
