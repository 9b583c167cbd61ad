/** What the client throws. */

/**
 * Why a call failed:
 *
 * - `unreachable`: no connection, or it broke before the answer was complete
 * - `timeout`: no answer in time, or the end that was waited for did not come in time
 * - `invalid` 400, `unauthenticated` 401, `denied` 403, `not_found` 404, `conflict` 409, `too_large` 413: the answers of
 *   the service; the message says what is wrong
 * - `key_reused` 422: the idempotency key came with another body before
 * - `unavailable` 429, 502, 503, 504: not now; nothing was stored if the service itself answered
 * - `internal`: another answer from 500 to 599
 * - `refused`: another answer from 300 to 499
 * - `unexpected_answer`: something else than the control service answered
 */
export type FailureCode =
  | 'unreachable'
  | 'timeout'
  | 'invalid'
  | 'unauthenticated'
  | 'denied'
  | 'not_found'
  | 'conflict'
  | 'too_large'
  | 'key_reused'
  | 'unavailable'
  | 'internal'
  | 'refused'
  | 'unexpected_answer'

const CODES: Readonly<Record<number, FailureCode>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'denied',
  404: 'not_found',
  409: 'conflict',
  413: 'too_large',
  422: 'key_reused',
  429: 'unavailable',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
}

const codeOf = (status: number): FailureCode => CODES[status] ?? (status >= 500 ? 'internal' : 'refused')

export interface Failure {
  readonly code: FailureCode
  /** Status of the HTTP answer; 0 without one. */
  readonly status?: number
  /** Milliseconds after which another try may succeed, if the answer says so. */
  readonly retryAfterMs?: number | undefined
  /** Trace id of the answer, which the log lines of the service carry. */
  readonly traceId?: string | undefined
  /** Whether the request may have reached the service, which may then have executed it. */
  readonly wasSent?: boolean
  readonly cause?: unknown
}

export class TaskmillError extends Error {
  override readonly name = 'TaskmillError'
  readonly code: FailureCode
  readonly status: number
  readonly retryAfterMs: number | undefined
  readonly traceId: string | undefined
  readonly wasSent: boolean

  constructor(message: string, { code, status = 0, retryAfterMs, traceId, wasSent = true, cause }: Failure) {
    super(message, { cause })
    this.code = code
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.traceId = traceId
    this.wasSent = wasSent
  }
}

/** The error of an answer that is no success. `text` is its body. */
export function refusal(call: string, { status, headers }: Response, text: string): TaskmillError {
  const said = errorIn(text)
  const isWrong = said?.startsWith('the token is wrong')
  const remedy = status !== 401 ? '' : ` (${isWrong ? 'correct the token' : 'pass a token'}, or set SERVICE_TOKEN)`
  const isUnknownPath = status === 404 && (said?.startsWith('not found: ') ?? true)
  const doubt = isUnknownPath ? ': is this the control service?' : ''
  return new TaskmillError(`${call} answered ${status}${said === undefined ? '' : `: ${said}`}${remedy}${doubt}`, {
    ...{ code: codeOf(status), status, retryAfterMs: retryAfterMs(headers.get('retry-after')) },
    traceId: headers.get('x-trace-id') ?? undefined,
  })
}

function errorIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined // the page of a proxy
  }
}

/** Milliseconds of a `Retry-After`: seconds, or a date. */
export function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** System codes of connections that were never made, in Bun and in Node. */
const NEVER_CONNECTED = new Set(['ConnectionRefused', 'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])

/** The error of a request without an answer. */
export function unreachable(call: string, url: string, error: unknown): TaskmillError {
  const codes = causesOf(error).map((each) => (each as { code?: unknown }).code)
  const wasSent = !codes.some((code) => NEVER_CONNECTED.has(String(code)))
  const deepest = causesOf(error).at(-1)
  const why =
    deepest instanceof Error && deepest.message !== '' ? deepest.message : (codes.find(Boolean) ?? 'no answer')
  return new TaskmillError(`${call}: cannot reach ${url}: ${why}`, { code: 'unreachable', wasSent, cause: error })
}

/** Causes that are looked at. */
const MAX_CAUSES = 10

/** The error and its causes. */
function causesOf(error: unknown): object[] {
  const causes: object[] = []
  let at = error
  while (typeof at === 'object' && at !== null && causes.length < MAX_CAUSES) {
    causes.push(at)
    at = (at as { cause?: unknown }).cause
  }
  return causes
}
