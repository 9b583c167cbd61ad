/**
 * Encodes records as JSON, with results from files. Fields other than the result have their values at the time of the
 * call.
 */
import type { Waiting } from '../../shared/contract/waiting.ts'
import type { KeptResults } from '../log/keeper.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from '../task/graph.ts'
import { handleRecord } from '../task/handle.ts'
import { taskRecord } from '../task/record.ts'
import { jsonWithStored } from './stored-result.ts'

/**
 * The record of a task. `error` reports a lost result after the error of the task. `waiting` says why the task does not
 * execute. Only a task without a result waits.
 */
export function recordJson(task: Task, reader: KeptResults, waiting?: Waiting): string | Promise<string> {
  const { result } = task
  if (waiting !== undefined) return JSON.stringify({ ...taskRecord(task), waiting })
  if (!(result instanceof ResultFile)) return JSON.stringify(taskRecord(task))
  const { result_file, ...record } = taskRecord(task)
  return jsonWithStored(record, { name: 'result', file: result, reader }, (lost) => ({
    ...record,
    error: joined(record.error, lost),
  }))
}

/** The record of a call of an MCP tool. `error` reports a lost result after the error of the call. */
export function callJson(task: Task, reader: KeptResults): string | Promise<string> {
  const { result } = task
  const record = handleRecord(task)
  if (!(result instanceof ResultFile)) return JSON.stringify(record)
  return jsonWithStored(record, { name: 'output', file: result, reader }, (lost) => ({
    ...record,
    error: { code: 'internal' as const, ...record.error, message: joined(record.error?.message, lost) },
  }))
}

const joined = (error: string | undefined, lost: string): string => (error === undefined ? lost : `${error}; ${lost}`)
