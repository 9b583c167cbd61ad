/** How each attempt of a task ended, for tasks that have more than one. Pure. */
import type { AttemptRecord } from '../../shared/contract/control.ts'
import { isoTime } from '../../shared/iso-time.ts'
import { tailOf } from '../../shared/text-tail.ts'
import type { Failure } from './failure.ts'
import type { Task } from './graph.ts'
import { ResultFile } from './result-file.ts'

/** Attempts that a task keeps the endings of; older ones go first. */
export const MAX_ATTEMPT_RECORDS = 10

/** Characters of each error; the task's own `error` has all of the last one. */
const MAX_ERROR_CHARACTERS = 2_048

/** What an attempt has left besides its failure. */
export interface AttemptOutput {
  readonly exit_code?: number
  readonly tail?: string
}

/** Texts of results, the one that says most about a failure first. */
const STREAMS = ['stderr', 'output', 'stdout', 'body'] as const

/**
 * Exit code and last lines of what the attempt has left. `tail` is what the executor says it is; without one the tail
 * comes from the texts of the result, unless the end of the text is missing there.
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

/** The record of the attempt that `task` has just ended, `at` milliseconds since 1970; undefined where that is unknown. */
export function attemptRecord(
  { attempt, attemptStartedAt }: Task,
  at: number | undefined,
  failure: Failure | undefined,
  output: AttemptOutput = {},
): AttemptRecord {
  return {
    attempt,
    ...(attemptStartedAt !== undefined && { started_at: isoTime(attemptStartedAt) }),
    ...(at !== undefined && { finished_at: isoTime(at) }),
    ...(failure !== undefined && { error: failure.message.slice(0, MAX_ERROR_CHARACTERS), code: failure.code }),
    ...output,
  }
}

/** `records` and one more, unless the last is of the same attempt: that has ended already. */
export function withAttempt(records: readonly AttemptRecord[] = [], record: AttemptRecord): readonly AttemptRecord[] {
  return records.at(-1)?.attempt === record.attempt ? records : [...records, record].slice(-MAX_ATTEMPT_RECORDS)
}

/** The failure in the record of an attempt that the end of the service cut short; it uses up no retry. */
export const interrupted = (message: string): Failure => ({ code: 'cancelled', message })
