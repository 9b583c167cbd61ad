/** What is told of connections: events of their task, and the answer made of these. Pure. */
import type { NetworkUsage } from '../../shared/contract/runtime.ts'
import type { NetworkConnection, TaskNetwork } from '../../shared/contract/task-network.ts'
import { hostText } from '../../shared/egress/host.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Authority } from '../plan/authority.ts'
import { type Protocol, type Refusal, reasonText, targetText } from './verdict.ts'

interface Asked {
  /** Absent if the client said nothing. */
  readonly protocol?: Protocol
  /** Absent if the client did not come to name one. */
  readonly target?: Authority
}

export type Report = Asked &
  (
    | { readonly verdict: 'refused'; readonly refusal: Refusal }
    | {
        readonly verdict: 'allowed'
        readonly rule: string | undefined
        /** Absent if there was no connection. */
        readonly address: string | undefined
        readonly bytesSent: number
        readonly bytesReceived: number
        readonly durationMs: number
        /** Why there was no connection. */
        readonly failure?: string
        /** Why the connection was cut. */
        readonly cut?: Refusal
      }
  )

/** A connection that has been made. */
export interface OpenConnection {
  readonly host: string
  readonly port: number
  readonly protocol: Protocol
  readonly address?: string | undefined
  readonly rule?: string | undefined
}

/** An event about the network, as it is stored. */
export interface NetworkEvent {
  readonly event_type: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

export const NETWORK_EVENTS = {
  allowed: 'network_allowed',
  refused: 'network_refused',
  unlisted: 'network_unlisted',
} as const

/** Maximum events of a task about connections that were allowed, and as many about refused ones. */
export const MAX_NETWORK_EVENTS = 64

/** Characters of a name that a client made up. */
const MAX_SHOWN_CHARACTERS = 256

/** The event of a connection. */
export function networkEvent(report: Report): NetworkEvent {
  const { protocol, target } = report
  const asked = {
    ...(target !== undefined && { host: hostText(target.host), port: target.port }),
    ...(protocol !== undefined && { protocol }),
  }
  const what = target === undefined ? 'a connection' : `the connection to ${targetText(target)}`
  if (report.verdict === 'refused') {
    const { kind, ...more } = report.refusal
    return {
      event_type: NETWORK_EVENTS.refused,
      message: shortened(`${what} is refused: ${reasonText(report.refusal)}`),
      data: { ...asked, reason: kind, ...refusalData(more) },
    }
  }
  const { rule, address, bytesSent, bytesReceived, durationMs, failure, cut } = report
  return {
    event_type: NETWORK_EVENTS.allowed,
    message: `${what} is allowed: ${endText(report)}`,
    data: {
      ...asked,
      ...(address !== undefined && { address }),
      ...(rule !== undefined && { rule }),
      bytes_sent: bytesSent,
      bytes_received: bytesReceived,
      duration_ms: Math.round(durationMs),
      ...(failure !== undefined && { failure }),
      ...(cut !== undefined && { cut: cut.kind }),
    },
  }
}

/** The event of a connection that was open when its service ended, and could not tell its bytes any more. */
export function restartEvent(connection: OpenConnection): {
  event_type: string
  message: string
  data: Record<string, unknown>
} {
  const { host, port } = connection
  const cut = { kind: 'restart' } as const
  return {
    event_type: NETWORK_EVENTS.allowed,
    message: `the connection to ${host.includes(':') ? `[${host}]` : host}:${port} is allowed: cut, as ${reasonText(cut)}`,
    data: { ...connection, cut: cut.kind },
  }
}

function endText(report: Extract<Report, { verdict: 'allowed' }>): string {
  if (report.failure !== undefined) return `there is none, as ${report.failure}`
  const bytes = `${report.bytesSent} bytes sent, ${report.bytesReceived} received`
  return report.cut === undefined ? bytes : `${bytes}, then cut, as ${reasonText(report.cut)}`
}

function refusalData({ addressClass, ...more }: { addressClass?: string } & Record<string, unknown>) {
  const texts = Object.entries(more).map(([name, value]) => [name, shortened(String(value))])
  return { ...Object.fromEntries(texts), ...(addressClass !== undefined && { address_class: addressClass }) }
}

const shortened = (text: string): string =>
  text.length > MAX_SHOWN_CHARACTERS * 2 ? `${text.slice(0, MAX_SHOWN_CHARACTERS * 2)}...` : text

type TimedEvent = NetworkEvent & { readonly timestamp: number }

/** What a task did on its network, as callers see it. `usage` is undefined for a task without rules. Events about other things than its network are left out. */
export function taskNetwork(usage: NetworkUsage | undefined, open: number, events: readonly TimedEvent[]): TaskNetwork {
  const connections = events.filter(isOfConnection).map(connectionOf)
  const count = usage === undefined ? 0 : usage.connections_allowed + usage.connections_refused
  return {
    ...(usage !== undefined && { usage }),
    ...{ open, connections, unlisted: Math.max(0, count - connections.length) },
  }
}

const isOfConnection = ({ event_type }: NetworkEvent): boolean =>
  event_type === NETWORK_EVENTS.allowed || event_type === NETWORK_EVENTS.refused

/** Fields that an event has under the same name. */
const SAME = ['host', 'port', 'address', 'rule', 'bytes_sent', 'bytes_received', 'duration_ms'] as const

function connectionOf({ event_type, timestamp, message, data }: TimedEvent): NetworkConnection {
  const same = Object.fromEntries(SAME.flatMap((name) => (data[name] === undefined ? [] : [[name, data[name]]])))
  const reason = data.reason ?? data.cut
  return {
    at: isoTime(timestamp),
    verdict: event_type === NETWORK_EVENTS.refused ? 'refused' : data.failure === undefined ? 'allowed' : 'failed',
    ...same,
    ...(reason !== undefined && { reason: String(reason) }),
    message,
  }
}
