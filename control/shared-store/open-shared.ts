/** Opens the database as the start of a replica does: waits for the lease, then reads all graphs. */
import { StartFault, UsageError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { EventHistory } from '../journal/event-history.ts'
import { findHistory } from '../journal/found-history.ts'
import { segmentNumbersIn } from '../journal/journal-reader.ts'
import { hasSnapshot } from '../journal/snapshot-writer.ts'
import { TaskStore } from '../store/tasks.ts'
import { databaseFault } from './database-fault.ts'
import type { DatabaseUrl } from './database-url.ts'
import { type RecoveredRows, SharedKeeper } from './shared-keeper.ts'
import { type ActiveReplica, FIRST_OF_REPLICA, mayPass, SharedRows } from './shared-rows.ts'
import { becomeActive } from './standby.ts'

/** Parts of the lease in which the database must answer. Then a turn has time for a second try. */
const ANSWERS_PER_LEASE = 3

export interface OpenSharedOptions {
  /** The primary and its standbys. */
  readonly urls: readonly DatabaseUrl[]
  readonly leaseMs: number
  /** Milliseconds that a start waits for the database. */
  readonly timeoutMs: number
  /** Where callers reach this replica. */
  readonly address: string
  readonly dataDir: string
  /** Minimum number of past events to keep. */
  readonly maxEvents: number
  readonly log: Log
  /** Called when another replica has the lease. */
  readonly onWaiting: (active: ActiveReplica) => void
  /** Fires when the start is to stop. */
  readonly signal: AbortSignal
}

export interface OpenedShared {
  readonly store: TaskStore
  readonly keeper: SharedKeeper
  readonly recovered: RecoveredRows
}

/** Throws `UsageError`, and the reason of the signal. */
export async function openShared(options: OpenSharedOptions): Promise<OpenedShared> {
  const { urls, leaseMs, timeoutMs, dataDir, maxEvents, log, onWaiting } = options
  if (hasSnapshot(dataDir) || segmentNumbersIn(dataDir).length > 0) {
    const text = 'has graphs of a service without --database, which it would not see'
    throw new UsageError(`the data directory ${dataDir} ${text}: give another with --data-dir`)
  }
  const rows = new SharedRows({ urls, leaseMs, answerMs: leaseMs / ANSWERS_PER_LEASE, log })
  let keeper: SharedKeeper | undefined
  try {
    await reached(rows.open(timeoutMs), timeoutMs)
    await becomeActive({
      ...{ rows, leaseMs, address: options.address, signal: options.signal },
      onWaiting(active) {
        log.info('another replica is active', { replica: active.id, url: active.address })
        onWaiting(active)
      },
    })
    const first = rows.id * FIRST_OF_REPLICA
    const store = new TaskStore({ lastSeq: first, lastOrdinal: first })
    const found = findHistory(dataDir)
    const history = new EventHistory({ dataDir, found, kept: undefined, lastSeq: first, maxEvents, log })
    keeper = new SharedKeeper({ rows, store, history, leaseMs, log })
    const recovered = await keeper.recover()
    log.info('this replica is active', { replica: rows.id })
    return { store, keeper, recovered }
  } catch (error) {
    await (keeper ?? rows).close()
    throw error
  }
}

/** What `opening` rejects with, for the person who started the service. */
async function reached(opening: Promise<void>, timeoutMs: number): Promise<void> {
  try {
    await opening
  } catch (error) {
    if (error instanceof UsageError) throw error
    const fault = databaseFault(error)
    const hint = '(taskmill-control database check tells more)'
    if (!mayPass(fault)) throw new UsageError(`cannot use the database: ${fault.message} ${hint}`)
    throw new StartFault(`no database within ${timeoutMs / 1_000} s (--database-timeout): ${fault.message} ${hint}`)
  }
}
