/** Replicas on a real database, without the services above them. */
import { parseDatabaseUrls } from '../../control/log/postgres/database-url.ts'
import { SharedRows } from '../../control/log/postgres/shared-rows.ts'
import type { NewFrame, NewGraph, TurnWrites } from '../../control/log/postgres/turn-writes.ts'
import { type Log, silentLog } from '../../shared/logs/log.ts'

interface RowsOptions {
  /** Milliseconds. The default is long enough for a busy machine. */
  readonly leaseMs?: number
  /** Milliseconds that the database may take for an answer. */
  readonly answerMs?: number
  /** The lock of its data directory. */
  readonly lockId?: string
  readonly log?: Log
}

/** Connects, and makes the tables. */
export async function openRows(
  urls: readonly string[],
  { leaseMs = 60_000, answerMs = 20_000, lockId, log = silentLog() }: RowsOptions = {},
): Promise<SharedRows & AsyncDisposable> {
  const rows = new SharedRows({ urls: parseDatabaseUrls(urls, 'the test'), leaseMs, answerMs, lockId, log })
  try {
    await rows.open(30_000)
  } catch (error) {
    await rows.close()
    throw error
  }
  return Object.assign(rows, { [Symbol.asyncDispose]: () => rows.close() })
}

/** As `openRows`, and registers a replica. */
export async function registeredRows(
  urls: readonly string[],
  options?: RowsOptions,
): Promise<SharedRows & AsyncDisposable> {
  const rows = await openRows(urls, options)
  const other = await rows.replicas.register(false)
  if (other !== undefined) throw new Error(`replica ${other.id} of an earlier version is active`)
  return rows
}

export const writes = (some: Partial<TurnWrites>): TurnWrites => ({
  ...{
    graphs: [],
    frames: [],
    removed: [],
    freedIds: [],
    freedKeys: [],
    resultUses: [],
    callbacks: [],
    orphans: [],
    removals: [],
    revived: [],
  },
  ...some,
})

export const graph = (ordinal: number, taskIds: readonly string[] = [], payload = '{}'): NewGraph => ({
  ...{ ordinal, id: `graph-${ordinal}`, payload, taskIds, key: undefined },
})

export const frame = (ordinal: number, number: number, payload = '[]', ends = false): NewFrame => ({
  ...{ ordinal, number, payload, ends },
  ...{ seq: number, changes: 1 },
})
