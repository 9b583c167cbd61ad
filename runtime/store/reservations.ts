/** The rows of the ledger: kept after their release, for audit. */
import type { Database } from 'bun:sqlite'

export interface ReservationRow {
  readonly task_id: string
  readonly tenant: string | null
  readonly task_slots: number
  readonly memory_bytes: number | null
  readonly pids: number | null
  /** Milliseconds since 1970. */
  readonly reserved_at: number
  readonly released_at: number | null
}

export function insertReservation(db: Database, row: ReservationRow): void {
  db.query(
    `insert or replace into reservations (task_id, tenant, task_slots, memory_bytes, pids, reserved_at, released_at)
     values ($task_id, $tenant, $task_slots, $memory_bytes, $pids, $reserved_at, $released_at)`,
  ).run({ ...row })
}

export function releaseReservation(db: Database, task_id: string, released_at: number): void {
  db.query('update reservations set released_at = ? where task_id = ? and released_at is null').run(
    released_at,
    task_id,
  )
}

export const liveReservations = (db: Database): ReservationRow[] =>
  db.query<ReservationRow, []>('select * from reservations where released_at is null order by reserved_at').all()
