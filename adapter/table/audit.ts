/** Records of the audit log as text. Pure. */
import type { AuditResponse } from '../../shared/contract/audit.ts'
import { alignedRows, type Cell } from './columns.ts'
import type { Look } from './look.ts'
import { timeAgo } from './words.ts'

export function auditTable({ records, next }: AuditResponse, look: Look): string[] {
  if (records.length === 0) return [look.paint('dim', 'no requests')]
  const rows = records.map(
    ({ time, replica = '', by = '', from = '', door, what, target = '', graph_id, status }): Cell[] => [
      { text: timeAgo(time, look.nowMs) },
      { text: String(replica) },
      { text: by, style: 'bold' },
      { text: from },
      { text: door },
      { text: what },
      { text: graph_id ?? target },
      { text: status === undefined ? '' : String(status), ...((status ?? 0) >= 400 && { style: 'red' as const }) },
    ],
  )
  return [
    ...alignedRows(['WHEN', 'REPLICA', 'BY', 'FROM', 'DOOR', 'WHAT', 'GRAPH OR TARGET', 'STATUS'], rows, look),
    ...(next === undefined ? [] : [look.paint('dim', `more: --before ${next}`)]),
  ]
}
