/** What a task did on its network, as callers see it. Pure. */
import type { NetworkUsage } from '../../shared/contract/runtime.ts'
import type { NetworkConnection, TaskNetwork } from '../../shared/contract/task-network.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { NetworkEvent } from './network-use.ts'
import { NETWORK_EVENTS } from './report.ts'

type TimedEvent = NetworkEvent & { readonly timestamp: number }

/** `usage` is undefined for a task without rules. Events about other things than its network are left out. */
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
