/** Runs changes of the database in one transaction. */
import type { Database } from 'bun:sqlite'

/** Commits all `changes`, or none and throws. `apply` runs the statements of a change. */
export function inTransaction(db: Database, changes: readonly { readonly apply: () => void }[]): void {
  db.query('begin immediate').run() // prepared once, unlike with `db.run`
  try {
    for (const { apply } of changes) apply()
    db.query('commit').run()
  } catch (error) {
    // SQLite rolls back by itself after some faults. Then the transaction has ended.
    if (db.inTransaction) db.run('rollback')
    throw error
  }
}
