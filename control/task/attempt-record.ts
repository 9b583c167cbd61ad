/** Records of how attempts ended, for tasks with more than one attempt. Pure. */
import type { AttemptRecord } from '../../shared/contract/control.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { tailOf } from '../../shared/text/text-tail.ts'
import type { Failure } from '../rules/failure.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from './graph.ts'

/** Number of attempts that a task keeps records of. The oldest are dropped first. */
export const MAX_ATTEMPT_RECORDS = 10

/** Characters of each error. The `error` of the task holds the last one in full. */
const MAX_ERROR_CHARACTERS = 2_048

/** Exit code and end of the output of an attempt. */
export interface AttemptOutput {
  readonly exit_code?: number
  readonly tail?: string
}

/** Fields of results that hold output. The field that explains a failure best comes first. */
const STREAMS = ['stderr', 'output', 'stdout', 'body'] as const

/**
 * Exit code and last lines of the output of an attempt. `tail` comes from the executor. Without it, the tail is taken
 * from the result, unless the output was truncated there.
 */
export function attemptOutput(result: unknown, tail?: string): AttemptOutput {
  const members = isMembers(result) ? result : {}
  const { exit_code } = members
  const last = tail === undefined ? tailOfResult(members) : tailOf(tail)
  return { ...(Number.isInteger(exit_code) && { exit_code: exit_code as number }), ...(last !== '' && { tail: last }) }
}

const isMembers = (result: unknown): result is Readonly<Record<string, unknown>> =>
  result !== null && typeof result === 'object' && !(result instanceof ResultFile)

function tailOfResult(result: Readonly<Record<string, unknown>>): string {
  for (const stream of STREAMS) {
    const text = result[stream]
    if (typeof text !== 'string') continue
    if ((result[`${stream}_truncated`] ?? result.truncated) === true) return ''
    const tail = tailOf(text)
    if (tail !== '') return tail
  }
  return ''
}

/** The record of the last attempt of `task`, which ended at `at` (milliseconds since 1970; undefined if unknown). */
export function attemptRecord(
  { attempt, attemptStartedAt, rare }: Task,
  at: number | undefined,
  failure: Failure | undefined,
  output: AttemptOutput = {},
): AttemptRecord {
  return {
    attempt,
    ...(attemptStartedAt !== undefined && { started_at: isoTime(attemptStartedAt) }),
    ...(at !== undefined && { finished_at: isoTime(at) }),
    ...(failure !== undefined && { error: failure.message.slice(0, MAX_ERROR_CHARACTERS), code: failure.code }),
    ...(rare.handle?.runtime !== undefined && { placed_on: rare.handle.runtime }),
    ...output,
  }
}

/** Appends `record` to `records`, unless the last record is of the same attempt. */
export function withAttempt(records: readonly AttemptRecord[] = [], record: AttemptRecord): readonly AttemptRecord[] {
  return records.at(-1)?.attempt === record.attempt ? records : [...records, record].slice(-MAX_ATTEMPT_RECORDS)
}

/** The failure of a task that was cancelled, for a `reason` if there is one. */
export const cancelled = (reason?: string): Failure => ({
  code: 'cancelled',
  message: reason === undefined ? 'task cancelled' : `task cancelled: ${reason}`,
})

/** The failure of an attempt that a stop of the service interrupted. It uses up no retry. */
export const interrupted = (message: string): Failure => ({ code: 'cancelled', message })
