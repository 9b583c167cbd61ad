/** Texts for errors of connections, which `fetch` and sockets throw. Pure. */
import { messageOf, systemCodeOf } from '../contract/errors.ts'

/** The called service, for error texts. */
export interface CalledService {
  /** `control` or `runtime`. */
  readonly name: string
  /** The command that starts it. */
  readonly start: string
  /** The variable and the flag that set its address. */
  readonly urlVariable: string
  readonly urlFlag: string
  /** The variable that sets the token for its calls. */
  readonly tokenVariable: string
}

type FaultKind = 'refused' | 'unresolved' | 'closed' | 'no-http' | 'other'

interface ConnectionFault {
  readonly kind: FaultKind
  readonly text: string
}

const REFUSED: ConnectionFault = { kind: 'refused', text: 'connection refused' }
const CLOSED: ConnectionFault = { kind: 'closed', text: 'the connection was closed before the answer was complete' }

const NO_HTTP: ConnectionFault = { kind: 'no-http', text: 'what listens there speaks no HTTP' }

/** Faults by the error codes of the system and of Bun. */
const FAULTS: Readonly<Record<string, ConnectionFault>> = {
  ECONNREFUSED: REFUSED,
  ConnectionRefused: REFUSED,
  ENOENT: { kind: 'refused', text: 'there is no such socket' },
  ECONNRESET: CLOSED,
  ConnectionClosed: CLOSED,
  Malformed_HTTP_Response: NO_HTTP,
  EPROTO: { kind: 'no-http', text: 'what listens there speaks no TLS' },
  ENOTFOUND: { kind: 'unresolved', text: 'no such host' },
  EAI_AGAIN: { kind: 'unresolved', text: 'the resolver is unavailable, try again' },
  ENETUNREACH: { kind: 'other', text: 'network unreachable' },
  EHOSTUNREACH: { kind: 'other', text: 'host unreachable' },
  ETIMEDOUT: { kind: 'other', text: 'no answer in time' },
  EACCES: { kind: 'other', text: 'not permitted' },
  EMFILE: { kind: 'other', text: 'no file descriptor is left' },
}

/** ofetch wraps errors of `fetch`; the cause tells more. */
const causeOf = (error: unknown): unknown => (error as { cause?: unknown } | null)?.cause ?? error

/** The connection fault of `error` or of one of its causes; undefined if there is none. */
export function connectionFault(error: unknown): ConnectionFault | undefined {
  for (let at = error; at !== undefined && at !== null; at = (at as { cause?: unknown }).cause) {
    const fault = FAULTS[systemCodeOf(at) ?? '']
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Whether an `AbortSignal.timeout` caused `error`. */
export const isTimeout = (error: unknown): boolean =>
  (causeOf(error) as { name?: unknown } | null)?.name === 'TimeoutError'

/** Whether the request cannot have been sent, because there was no connection. */
export function neverConnected(error: unknown): boolean {
  const kind = connectionFault(error)?.kind
  return kind === 'refused' || kind === 'unresolved'
}

export interface FaultContext {
  /** The service that the remedy is about. Default: no remedy. */
  readonly service?: CalledService
  /** Time limit of the answer in milliseconds. */
  readonly timeoutMs?: number
}

export function faultText(error: unknown, { service, timeoutMs }: FaultContext = {}): string {
  if (timeoutMs !== undefined && isTimeout(error)) return `no answer within ${Math.round(timeoutMs)} ms`
  const fault = connectionFault(error)
  if (fault === undefined) return messageOf(causeOf(error))
  const remedy = service && remedyFor(fault.kind, service)
  return remedy === undefined ? fault.text : `${fault.text} (${remedy})`
}

function remedyFor(kind: FaultKind, { start, urlVariable, urlFlag }: CalledService): string | undefined {
  if (kind === 'refused') return `is it running? start it with ${start}, or set ${urlVariable}`
  return kind === 'unresolved' || kind === 'no-http' ? `check ${urlVariable} or ${urlFlag}` : undefined
}
