/** Translates answers of the runtime service to outcomes of attempts. Pure. */

import { ERROR_CODES, type ErrorCode } from '../../../shared/contract/error-codes.ts'
import type { TaskStatusResponse } from '../../../shared/contract/runtime.ts'
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import type { CallFailed } from '../../../shared/http/client.ts'
import { missingTaskIn } from '../../../shared/request/inputs.ts'
import { isOfSecretCommand, isOfSecrets } from '../../../shared/request/secrets.ts'
import { textOf } from '../../../shared/streams/bounded-output.ts'
import { isGiven, isObject, jsonOrUndefined } from '../../../shared/text/json.ts'
import { tailOf } from '../../../shared/text/text-tail.ts'
import type { Failure } from '../../rules/failure.ts'
import { ExecutionError } from '../executor.ts'

/** Maximum bytes of each stream in a result. `logs` has the URLs of the whole streams. */
export const MAX_RESULT_STREAM_BYTES = 256 * 1024

/** The `source` of failures that the runtime service reported. */
export const SOURCE = 'runtime'

/** The error of an attempt that is stopped. The reason is known where the signal was fired. */
export const stoppedError = () => new ExecutionError('cancelled', 'the attempt is not waited for any more')

/** The status from the runtime service, with shortened output. */
export interface RuntimeResult extends TaskStatusResponse {
  /** Whether a stream was shortened. */
  readonly truncated: boolean
  /** URLs of the whole streams. */
  readonly logs: { readonly stdout: string; readonly stderr: string }
  /** The name of the runtime service that has the files of the task. Absent if it has no name. */
  readonly placed_on?: string
}

/** The runtime service that ran a task. */
export interface ResultPlace {
  readonly name: string
  readonly url: string
}

/** The result of a successful task. Throws `ExecutionError` for any other end, with that result. */
export function outcomeOf(status: TaskStatusResponse, runtime: ResultPlace): RuntimeResult {
  const result = resultOf(status, runtime)
  if (status.status === 'success') return result
  const { error } = status
  const code = error?.code ?? 'unknown'
  const message = error?.message ?? `the task ended as ${status.status}`
  const isOurs = (ERROR_CODES as readonly string[]).includes(code)
  throw new ExecutionError(isOurs ? (code as ErrorCode) : 'unknown', message, {
    ...{ result, source: SOURCE },
    ...(isGiven(error?.details) && { details: error?.details }),
    tail: lastLines(status),
    // The task was lost in a restart of the runtime service, or another client killed it.
    ...((code === 'internal' || code === 'cancelled' || isOfSecretCommand(error?.details)) && { retryable: true }),
    ...(isOfSecrets(error?.details) && { retryable: false, isFinal: true }),
  })
}

/** The result with shortened output. */
function lastLines({ stdout, stderr, stdout_truncated, stderr_truncated }: TaskStatusResponse) {
  const [text, isCut] = (stderr ?? '').trim() === '' ? [stdout ?? '', stdout_truncated] : [stderr, stderr_truncated]
  return isCut ? undefined : tailOf(text)
}

export function resultOf(status: TaskStatusResponse, { name, url }: ResultPlace): RuntimeResult {
  const stdout = bounded(status.stdout ?? '')
  const stderr = bounded(status.stderr ?? '')
  const stdout_truncated = stdout.truncated || status.stdout_truncated
  const stderr_truncated = stderr.truncated || status.stderr_truncated
  const logs = `${url}/api/v1/tasks/${status.task_id}/logs?stream=`
  return {
    ...status,
    ...{ stdout: stdout.text, stderr: stderr.text, stdout_truncated, stderr_truncated },
    truncated: stdout_truncated || stderr_truncated,
    logs: { stdout: `${logs}stdout`, stderr: `${logs}stderr` },
    ...(name !== DEFAULT_RUNTIME && { placed_on: name }),
  }
}

/** The beginning of `text`, cut between two characters. */
function bounded(text: string): { text: string; truncated: boolean } {
  // A UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= MAX_RESULT_STREAM_BYTES) return { text, truncated: false }
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= MAX_RESULT_STREAM_BYTES) return { text, truncated: false }
  return { text: textOf(bytes.subarray(0, MAX_RESULT_STREAM_BYTES), true), truncated: true }
}

/** Codes of the runtime service that have another name in control. Other unknown codes become `external_failure`. */
const CODE_OF_REFUSAL: Readonly<Record<string, ErrorCode>> = {
  invalid_input: 'invalid_input',
  payload_too_large: 'invalid_input',
  unsupported_capability: 'denied',
  permission_denied: 'denied',
  unauthenticated: 'denied',
  insufficient_resources: 'resource_limit_exceeded',
  resource_limit_exceeded: 'resource_limit_exceeded',
  not_found: 'not_found',
}

/** Temporary refusals: full queue, stopping service, full disk, internal error. */
const PASSING: ReadonlySet<string> = new Set(['resource_limit_exceeded', 'unavailable', 'internal'])

/** The error of an attempt whose request was refused or did not arrive. `at` is the beginning of its message. */
export function failureOf(error: CallFailed, at = ''): ExecutionError {
  if (error.statusCode === 0) {
    return new ExecutionError('external_failure', at + error.message, { cause: error, retryable: true })
  }
  const { code, message, details } = refusalIn(error.body)
  const text = message === undefined || error.statusCode === 401 ? error.message : message // which has a remedy
  return new ExecutionError(CODE_OF_REFUSAL[code] ?? 'external_failure', at + text, {
    cause: error,
    source: SOURCE,
    retryable: code === '' ? error.statusCode >= 500 : PASSING.has(code),
    isFinal: isOfSecrets(details),
    details: { status_code: error.statusCode, ...(code !== '' && { code }), ...(isGiven(details) && { details }) },
  })
}

/**
 * Whether the runtime service refused a request, so that it does not have the task. A proxy may answer any status from 500 on
 * after it has sent the request on.
 */
export const isRefusal = (error: CallFailed): boolean =>
  error.statusCode > 0 && (error.statusCode < 500 || isOfService(error))

/** Whether a refusal is from the runtime service, not from a proxy. */
export const isOfService = ({ body }: CallFailed): boolean => refusalIn(body).code !== ''

/** Whether a submission came later than it may be accepted. */
export const isLate = (error: CallFailed): boolean => hasDetail(error, 'refused_as', 'late')

/** Whether a kill has barred the id of a submission. */
export const isOfBarred = (error: CallFailed): boolean => hasDetail(error, 'refused_as', 'barred')

/** Whether a kill found no task, and no submission of the id is accepted from now on. */
export const isBarred = (error: CallFailed): boolean => hasDetail(error, 'barred', true)

function hasDetail(error: CallFailed, name: string, value: unknown): boolean {
  const details = refusedDetails(error)
  return isObject(details) && details[name] === value
}

/** Whether the runtime service does not know the route, as its version is too old. */
export const lacksRoute = ({ statusCode, body }: CallFailed): boolean =>
  statusCode === 404 && refusalIn(body).message?.startsWith('not found: ') === true

/** The details of the refusal of a runtime service. */
export const refusedDetails = ({ body }: CallFailed): unknown => refusalIn(body).details

/** The text of the refusal of a runtime service. */
export const refusedText = ({ body }: CallFailed): string | undefined => refusalIn(body).message

/** The refusal in `body`. Without a code if the answer is not from the runtime service, but from a proxy. */
function refusalIn(body: string): { code: string; message?: string; details?: unknown } {
  const answer = jsonOrUndefined(body)
  const error = isObject(answer) && isObject(answer.error) ? answer.error : {}
  const { code, message, details } = error
  return typeof code === 'string' && typeof message === 'string' ? { code, message, details } : { code: '' }
}

/** The id there of the task whose files an attempt needed, and which the runtime service no longer has. */
export function missingSourceOf({ source, details }: Failure): string | undefined {
  if (source !== SOURCE || !isObject(details)) return undefined
  return missingTaskIn(details) ?? missingTaskIn(details.details)
}
