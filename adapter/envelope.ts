/** What the client prints, one of these per call, and the exit codes. Source: spec, Client output envelopes. */
import { UsageError } from '../shared/errors.ts'

export type Envelope =
  | { readonly ok: true; readonly data: object }
  | {
      readonly ok: false
      readonly error: {
        readonly message: string
        /** Of the HTTP answer; 0 where there was none. */
        readonly status_code: number
        /** The HTTP answer's body, at most its first 64 KiB; empty where there was none. */
        readonly body: string
      }
      /** What was achieved all the same. */
      readonly data?: object
    }

export const EXIT = {
  success: 0,
  error: 1,
  usage: 2,
  /** `wait` did not see all tasks end in time. */
  waitTimedOut: 3,
  /** `ensure-running` cannot reach the control service. */
  controlUnreachable: 4,
  /** `ensure-running --with-runtime`: the runtime service is not ready. */
  runtimeUnreachable: 5,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What a subcommand gives back: the data to print and how to exit. */
export interface Answer {
  readonly data: object
  readonly exitCode: ExitCode
}

export const success = (data: object): Answer => ({ data, exitCode: EXIT.success })

/** A call that failed, with what there was of an HTTP answer. */
export class CallFailed extends Error {
  override name = 'CallFailed'
  readonly statusCode: number
  readonly body: string
  readonly data: object | undefined
  readonly exitCode: ExitCode
  constructor(
    message: string,
    answer: {
      readonly statusCode?: number
      readonly body?: string
      readonly data?: object | undefined
      readonly exitCode?: ExitCode
    } = {},
  ) {
    super(message)
    this.statusCode = answer.statusCode ?? 0
    this.body = answer.body ?? ''
    this.data = answer.data
    this.exitCode = answer.exitCode ?? EXIT.error
  }

  /** The same failure with what was achieved all the same. */
  with(data: object): CallFailed {
    return new CallFailed(this.message, {
      statusCode: this.statusCode,
      body: this.body,
      data,
      exitCode: this.exitCode,
    })
  }
}

/** The service did not answer within the time of the call. */
export class NoAnswerInTime extends CallFailed {
  override name = 'NoAnswerInTime'
}

/** The envelope and the exit code of whatever was thrown. */
export function failure(thrown: unknown): { envelope: Envelope; exitCode: number } {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const { statusCode, body, data, exitCode } = thrown instanceof CallFailed ? thrown : new CallFailed(message)
  const error = { message, status_code: statusCode, body }
  const envelope: Envelope = { ok: false, error, ...(data !== undefined && { data }) }
  return { envelope, exitCode: thrown instanceof UsageError ? EXIT.usage : exitCode }
}
