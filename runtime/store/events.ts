/** The events of tasks: appended, read in their order. */
import type { Database } from 'bun:sqlite'

export interface EventRow {
  readonly seq: number
  readonly task_id: string
  readonly event_type: string
  /** Milliseconds since 1970. */
  readonly timestamp: number
  readonly message: string
  /** JSON, or null. */
  readonly data: string | null
}

const ROW = '(?, ?, ?, ?, ?, ?)'

/** One statement for all of them: most changes of a task have several. */
export function insertEvents(db: Database, events: readonly EventRow[]): void {
  if (events.length === 0) return
  const values = events.flatMap(({ task_id, seq, event_type, timestamp, message, data }) => [
    ...[task_id, seq, event_type, timestamp, message, data],
  ])
  const rows = events.map(() => ROW).join(', ')
  db.query(`insert into events (task_id, seq, event_type, timestamp, message, data) values ${rows}`).run(...values)
}

export const eventsOf = (db: Database, task_id: string): EventRow[] =>
  db.query<EventRow, [string]>('select * from events where task_id = ? order by seq').all(task_id)

export const lastSeq = (db: Database, task_id: string): number =>
  db.query<{ last: number | null }, [string]>('select max(seq) as last from events where task_id = ?').get(task_id)
    ?.last ?? 0
