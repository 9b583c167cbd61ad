/** Trace ids tie a request, its tasks and every log line of both together. The header is `X-Trace-ID`. */

export const TRACE_HEADER = 'x-trace-id'

const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/

/** The caller's trace id when it is 1 to 128 visible ASCII characters, else a fresh one of 16 hex digits. */
export function traceIdFrom(header: string | null): string {
  return header !== null && ACCEPTABLE.test(header) ? header : newTraceId()
}

export function newTraceId(): string {
  return crypto.getRandomValues(new Uint8Array(8)).toHex()
}
