/** Turns errors of the SDK into faults with a text for the record of the task. */

import { messageOf } from '../../shared/contract/errors.ts'
import { connectionFault } from '../../shared/http/connection-fault.ts'
import type { McpServerConfig } from './config.ts'
import { McpFault, shortened } from './fault.ts'
import type { Sdk } from './sdk.ts'

export interface FaultContext {
  readonly sdk: Sdk
  readonly server: McpServerConfig
  /** Whether the server is a local one that has exited. */
  readonly isGone: () => boolean
  /** The known reason why the server is gone. Empty if unknown. */
  readonly explain: () => string
}

export function asFault(error: unknown, { sdk, server, isGone, explain }: FaultContext): McpFault {
  const who = `mcp server ${server.name}`
  if (error instanceof McpFault) return new McpFault(error.code, `${who}: ${error.message}`, { cause: error })
  const failure = (text: string, lost?: 'unheard' | 'unknown') =>
    new McpFault('external_failure', `${who}${text}`, { cause: error, ...(lost && { lost }) })
  if (error instanceof sdk.SdkHttpError) {
    const { status } = error
    if (status === 401 || status === 403) {
      return failure(` refuses us (HTTP ${status}): give it what it wants in "headers" of the --mcp-config`)
    }
    return failure(
      ` answered HTTP ${status}: ${shortened(error.message)}`,
      SESSION_GONE.has(status) ? 'unheard' : 'unknown',
    )
  }
  if (error instanceof sdk.UnauthorizedError) {
    return failure(' wants a login: give it a token in "headers" of the --mcp-config')
  }
  if (isGone() || (error instanceof sdk.SdkError && GONE.has(error.code))) {
    const detail = explain()
    return failure(` ended before it answered${detail === '' ? '' : `: ${detail}`}`, 'unknown')
  }
  const fault = connectionFault(error)
  if (fault !== undefined && server.kind === 'http') {
    const remedy = fault.kind === 'refused' ? ' (is it running?)' : ''
    return failure(` at ${placeOf(server.url)}: ${fault.text}${remedy}`, 'unknown')
  }
  return failure(`: ${shortened(messageOf(error))}`)
}

/** An address without its secret parts. */
function placeOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

/** Answers of servers to an unknown session, as after a restart of the server. */
const SESSION_GONE = new Set<number | undefined>([400, 404, 410])

const GONE = new Set<unknown>(['CONNECTION_CLOSED', 'NOT_CONNECTED'])
