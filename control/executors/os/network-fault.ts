/** What went wrong on the network, in words. Pure. */
import { messageOf, systemCodeOf } from '../../../shared/errors.ts'

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ConnectionRefused: 'connection refused',
  ECONNRESET: 'connection closed by the server',
  ConnectionClosed: 'connection closed by the server',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the resolver is unavailable, try again',
  ENETUNREACH: 'network unreachable',
  EHOSTUNREACH: 'host unreachable',
  ETIMEDOUT: 'no answer in time',
  EACCES: 'not permitted',
  EMFILE: 'the service has no file descriptor left',
}

export const networkFault = (error: unknown): string => FAULTS[systemCodeOf(error) ?? ''] ?? messageOf(error)
