/** What fetch throws when a service of ours does not answer, in words for people. Pure. */
import { messageOf, systemCodeOf } from './errors.ts'

/** The service that is called, in words for people. */
export interface CalledService {
  /** `control`, `runtime`. */
  readonly name: string
  /** How one starts it. */
  readonly start: string
  /** What its address comes from. */
  readonly urlVariable: string
  readonly urlFlag: string
}

type Fault = 'refused' | 'no such host' | 'closed'

/** By the codes of the system and those of Bun. */
const FAULTS: Readonly<Record<string, Fault>> = {
  ECONNREFUSED: 'refused',
  ConnectionRefused: 'refused',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'no such host',
  ECONNRESET: 'closed',
  ConnectionClosed: 'closed',
}

/** ofetch wraps what fetch threw; the cause says more. */
const causeOf = (error: unknown): unknown => (error as { cause?: unknown } | null)?.cause ?? error

const faultOf = (error: unknown): Fault | undefined => FAULTS[systemCodeOf(causeOf(error)) ?? '']

/** An `AbortSignal.timeout` has ended it. */
export const isTimeout = (error: unknown): boolean =>
  (causeOf(error) as { name?: unknown } | null)?.name === 'TimeoutError'

/** There was no connection that a request could have gone through. */
export const neverConnected = (error: unknown): boolean => ['refused', 'no such host'].includes(faultOf(error) ?? '')

export interface FaultContext {
  /** Default: nothing is said of a remedy. */
  readonly service?: CalledService
  /** Milliseconds that an answer had. */
  readonly timeoutMs?: number
}

export function faultText(error: unknown, { service, timeoutMs }: FaultContext = {}): string {
  if (timeoutMs !== undefined && isTimeout(error)) return `no answer within ${Math.round(timeoutMs)} ms`
  const remedy = (text: (service: CalledService) => string) => (service === undefined ? '' : ` (${text(service)})`)
  switch (faultOf(error)) {
    case 'refused':
      return `connection refused${remedy(({ start, urlVariable }) => `is it running? start it with ${start}, or set ${urlVariable}`)}`
    case 'no such host':
      return `no such host${remedy(({ urlVariable, urlFlag }) => `check ${urlVariable} or ${urlFlag}`)}`
    case 'closed':
      return 'the connection was closed before the answer was complete'
    default:
      return messageOf(causeOf(error))
  }
}
