/** The connections of a task as text. Pure. */
import type { ConnectionVerdict, TaskNetwork } from '../../shared/contract/task-network.ts'
import type { Style } from '../../shared/text/live-view/palette.ts'
import { alignedRows, type Cell } from './columns.ts'
import type { Look } from './look.ts'
import { timeAgo, timeTaken } from './words.ts'

const STYLES: Readonly<Record<ConnectionVerdict, Style>> = { allowed: 'green', failed: 'yellow', refused: 'red' }

const HEADER = ['VERDICT', 'ENDED', 'HOST', 'SENT', 'RECEIVED', 'TOOK', 'RULE', 'WHY']

export function networkTable({ usage, open, connections, unlisted }: TaskNetwork, look: Look): string[] {
  if (usage === undefined) return [look.paint('dim', 'no connections: the network of the task has no rules')]
  const rows = connections.map(
    ({ verdict, at, host, port, bytes_sent, bytes_received, duration_ms, ...more }): Cell[] => [
      { text: verdict, style: STYLES[verdict] },
      { text: timeAgo(at, look.nowMs), style: 'dim' },
      { text: host === undefined ? '' : `${host.includes(':') ? `[${host}]` : host}:${port}` },
      { text: bytes_sent === undefined ? '' : String(bytes_sent), isRight: true },
      { text: bytes_received === undefined ? '' : String(bytes_received), isRight: true },
      { text: duration_ms === undefined ? '' : timeTaken(duration_ms), isRight: true },
      { text: more.rule ?? '', style: 'dim' },
      { text: verdict === 'allowed' && more.reason === undefined ? '' : more.message },
    ],
  )
  const totals = `${usage.connections_allowed} allowed, ${usage.connections_refused} refused, ${open} open, ${usage.bytes_sent} bytes sent, ${usage.bytes_received} received`
  return [
    ...(rows.length > 0 ? alignedRows(HEADER, rows, look) : []),
    ...(unlisted > 0 ? [look.paint('dim', `and ${unlisted} more`)] : []),
    totals,
  ]
}
