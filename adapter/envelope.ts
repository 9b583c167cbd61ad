/** What the client prints, one of these per call, and the exit codes. Source: spec, Client output envelopes. */
import { messageOf, UsageError } from '../shared/errors.ts'
import { CallFailed } from '../shared/http-client.ts'

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
  /** Lines for standard error. */
  readonly warnings?: readonly string[]
}

export const success = (data: object): Answer => ({ data, exitCode: EXIT.success })

/** A failure of which something was achieved all the same, or that has an exit code of its own. */
export class PartialFailure extends CallFailed {
  override name = 'PartialFailure'
  constructor(
    message: string,
    answer: { readonly statusCode?: number; readonly body?: string },
    readonly data: object,
    readonly exitCode: ExitCode = EXIT.error,
  ) {
    super(message, answer)
  }
}

/** The envelope and the exit code of whatever was thrown. */
export function failure(thrown: unknown): { envelope: Envelope; exitCode: number } {
  const { statusCode, body } = thrown instanceof CallFailed ? thrown : { statusCode: 0, body: '' }
  const error = { message: messageOf(thrown), status_code: statusCode, body }
  if (thrown instanceof PartialFailure) {
    return { envelope: { ok: false, error, data: thrown.data }, exitCode: thrown.exitCode }
  }
  return { envelope: { ok: false, error }, exitCode: thrown instanceof UsageError ? EXIT.usage : EXIT.error }
}
