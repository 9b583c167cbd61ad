/** A session of somebody else that has locked rows of a database. */
import { SQL } from 'bun'
import type { Postgres } from './postgres.ts'

interface LockedRows extends AsyncDisposable {
  /** Commits, and ends the session. */
  end(): Promise<void>
}

/** Executes `statement`, which locks rows until the end of the block. */
export async function lockedRows(server: Postgres, database: string, statement: string): Promise<LockedRows> {
  const session = new SQL(server.url(database), { database, max: 1 })
  const over = Promise.withResolvers<void>()
  const isLocked = Promise.withResolvers<void>()
  const holding = session.begin(async (sql) => {
    await sql.unsafe(statement)
    isLocked.resolve()
    await over.promise
  })
  await Promise.race([isLocked.promise, holding])
  const end = async () => {
    over.resolve()
    await holding
    await session.close()
  }
  return { end, [Symbol.asyncDispose]: end }
}
