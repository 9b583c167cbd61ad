/**
 * The audit log as a stream of server-sent events: a record becomes one once its request is answered.
 *
 * The log is read again each second, a little further back than before: a request is answered after its record was written, and
 * the clocks of replicas differ. So one way serves the file and the database, and a stream that resumes misses nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditRecord } from '../../shared/contract/audit.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import { type AuditLog, idsSince } from '../log/audit-log.ts'
import type { EventStream } from './event-stream.ts'
import { partText } from './event-text.ts'

/** Milliseconds between two looks. */
const LOOK_MS = 1_000

/** Milliseconds after which a request that is not answered is told without its status. */
export const MAX_UNTOLD_MS = 5_000

/** Milliseconds that a look goes back behind the one before. */
const LOOK_BACK_MS = 2 * MAX_UNTOLD_MS

/** Records of one look. A stream that meets more has missed too much: its client reads pages. */
export const MAX_FOLLOWED_RECORDS = 20_000

/** An id of a record begins with its milliseconds since 1970 in base 36. */
const ID = /^([0-9a-z]{9})-[0-9a-z-]{1,32}$/

/** Where a stream begins that resumes after the record with this id. Throws 400. */
export function placeOf(id: string): number {
  const [, ms] = ID.exec(id) ?? []
  if (ms === undefined) throw badRequest(`invalid Last-Event-ID ${JSON.stringify(id)}: expected the id of a record`)
  return Number.parseInt(ms, 36) - LOOK_BACK_MS
}

export interface AuditEventsOptions {
  readonly audit: Pick<AuditLog, 'read'>
  readonly client: EventStream
  /** Milliseconds since 1970. Earlier records are not sent. */
  readonly sinceMs: number
  /** Fires when the client has left, or the service stops. */
  readonly signal: AbortSignal
}

/** Sends records until the signal fires. */
export async function followAudit({ audit, client, sinceMs, signal }: AuditEventsOptions): Promise<void> {
  const sent = new Set<string>()
  for (let since = sinceMs; !signal.aborted; await sleep(LOOK_MS, undefined, { signal }).catch(() => {})) {
    const now = Date.now()
    // A database that is away is asked again: what came meanwhile is in the next look.
    const page = await audit.read({ since, before: undefined, limit: MAX_FOLLOWED_RECORDS }).catch(() => undefined)
    if (page === undefined) continue
    const records = page.records.toReversed().filter(({ id }) => !sent.has(id))
    for (const record of page.hasMore ? [] : records) {
      if (isOpen(record, now)) continue
      sent.add(record.id)
      client.sendText(partText(record.id, { kind: 'request', data: JSON.stringify(record) }))
      if (!(await client.drained())) return client.sendText(LAGGING)
    }
    if (page.hasMore) return client.sendText(LAGGING)
    since = Math.max(since, now - LOOK_BACK_MS)
    const first = idsSince(since)
    for (const id of sent) if (id < first) sent.delete(id)
  }
}

const LAGGING = 'event: lagging\ndata: {}\n\n'

const isOpen = ({ status, time }: AuditRecord, now: number): boolean =>
  status === undefined && now - Date.parse(time) < MAX_UNTOLD_MS
