/**
 * Trace ids connect a request, its tasks and their log lines. The header is `X-Trace-ID`. Without it, the `traceparent` of
 * the caller is the trace id, so that logs and spans belong to its trace.
 */

export const TRACE_HEADER = 'x-trace-id'

/** The headers of W3C Trace Context. */
export const TRACE_PARENT_HEADER = 'traceparent'
export const TRACE_STATE_HEADER = 'tracestate'

const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/

/**
 * The caller's trace id if it is 1 to 128 visible ASCII characters, else its valid `traceparent`, else a new one of 16 hex
 * digits.
 */
export function traceIdFrom(header: string | null, traceParent: string | null = null): string {
  if (header !== null && ACCEPTABLE.test(header)) return header
  return traceParent !== null && parseTraceParent(traceParent) !== undefined ? traceParent : newTraceId()
}

/** What a request hands on, by the names of the headers of W3C Trace Context. */
export interface TraceHeaders {
  readonly traceparent: string
  readonly tracestate?: string
}

/** The trace that a request belongs to. */
export interface RequestTrace {
  readonly traceId: string
  /** Its `tracestate`, where its `traceparent` is the trace id. */
  readonly traceState?: string | undefined
}

/** Characters of a `tracestate` that is kept. W3C Trace Context asks for at least as many. */
export const MAX_TRACE_STATE_CHARACTERS = 512

/** W3C Trace Context, section 3.3.1: members as `key=value`, some of which may be empty. */
const TRACE_STATE_MEMBER =
  /^[ \t]*([a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])?[ \t]*$/

const MAX_TRACE_STATE_MEMBERS = 32

/** The `tracestate` of a request with a valid `traceparent`. Undefined for one that is malformed, empty or too long. */
export function traceStateFrom(header: string | null): string | undefined {
  if (!header || header.length > MAX_TRACE_STATE_CHARACTERS) return undefined
  const members = header.split(',')
  return members.length <= MAX_TRACE_STATE_MEMBERS && members.every((member) => TRACE_STATE_MEMBER.test(member))
    ? header
    : undefined
}

const TRACE_PARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/

/** The characters of a `traceparent` of this and later versions. */
const MAX_TRACE_PARENT_CHARACTERS = 128

export interface TraceParent {
  readonly traceId: string
  readonly parentSpanId: string
  /** Whether the caller records its trace. */
  readonly isSampled: boolean
}

/** Undefined for a text that is no `traceparent`. */
export function parseTraceParent(text: string): TraceParent | undefined {
  if (text.length > MAX_TRACE_PARENT_CHARACTERS) return undefined
  const [, traceId, parentSpanId, flags, more] = TRACE_PARENT.exec(text) ?? []
  if (traceId === undefined || parentSpanId === undefined || flags === undefined) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentSpanId)) return undefined
  if (more !== undefined && text.startsWith('00')) return undefined // only later versions have more
  return { traceId, parentSpanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

const ID_BYTES = 8
const ID_DIGITS = 2 * ID_BYTES

/** Ids made at a time. One by one, each would cost a call of 0.6 µs. */
const IDS_AT_A_TIME = 64

let digits = ''
let used = 0

export function newTraceId(): string {
  if (used === digits.length) {
    digits = crypto.getRandomValues(new Uint8Array(IDS_AT_A_TIME * ID_BYTES)).toHex()
    used = 0
  }
  used += ID_DIGITS
  return digits.slice(used - ID_DIGITS, used)
}
