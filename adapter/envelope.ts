/** The JSON object that each call prints, and the exit codes. Source: spec, Client output envelopes. */
import { messageOf, UsageError } from '../shared/contract/errors.ts'
import { CallFailed } from '../shared/http/client.ts'
import type { Look } from './table/look.ts'

export interface Failure {
  readonly ok: false
  readonly error: {
    readonly message: string
    /** Status of the HTTP answer; 0 without one. */
    readonly status_code: number
    /** Body of the HTTP answer, at most its first 64 KiB; empty without one. */
    readonly body: string
  }
  /** The partial result. */
  readonly data?: object
}

export type Envelope = { readonly ok: true; readonly data: object } | Failure

export const EXIT = {
  success: 0,
  error: 1,
  usage: 2,
  /** `wait`, `run`, `watch`: not all tasks ended in time. */
  waitTimedOut: 3,
  /** `ensure-running`: the control service is not reachable. */
  controlUnreachable: 4,
  /** `ensure-running --with-runtime`: the runtime service is not ready. */
  runtimeUnreachable: 5,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The result of a subcommand: the data to print, and the exit code. */
export interface Answer {
  readonly data: object
  readonly exitCode: ExitCode
  /** Lines for standard error. */
  readonly warnings?: readonly string[]
  /** The data of `-o brief`. Absent: `data`. */
  readonly brief?: () => object
  /** The lines of `-o table`. Absent: the fields of `data`. */
  readonly table?: (look: Look) => Promise<readonly string[]>
}

export const success = (data: object): Answer => ({ data, exitCode: EXIT.success })

/** The client got SIGINT or SIGTERM. */
export class Interrupted extends Error {
  override name = 'Interrupted'
  constructor(
    readonly signal: NodeJS.Signals,
    /** 128 and the number of the signal, as shells have it. */
    readonly exitCode: number,
  ) {
    super(`interrupted by ${signal}`)
  }
}

/** A failure with partial data or with its own exit code. */
export class PartialFailure extends CallFailed {
  override name = 'PartialFailure'
  constructor(
    message: string,
    answer: { readonly statusCode?: number; readonly body?: string },
    readonly data: object,
    readonly exitCode: number = EXIT.error,
  ) {
    super(message, answer)
  }
}

/** The envelope and the exit code for a caught value. */
export function failure(thrown: unknown): { envelope: Failure; exitCode: number } {
  const { statusCode, body } = thrown instanceof CallFailed ? thrown : { statusCode: 0, body: '' }
  const error = { message: messageOf(thrown), status_code: statusCode, body }
  if (thrown instanceof PartialFailure) {
    return { envelope: { ok: false, error, data: thrown.data }, exitCode: thrown.exitCode }
  }
  const exitCode =
    thrown instanceof Interrupted ? thrown.exitCode : thrown instanceof UsageError ? EXIT.usage : EXIT.error
  return { envelope: { ok: false, error }, exitCode }
}
