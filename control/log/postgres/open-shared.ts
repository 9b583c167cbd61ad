/** Opens the database as the start of a replica does: registers it, then adopts the graphs of replicas that are gone. */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, StartFault, UsageError } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { withFile } from '../../rules/pool-state.ts'
import { TaskStore } from '../../task/task-store.ts'
import { markDatabase } from '../database-mark.ts'
import { EventHistory } from '../event-history.ts'
import { findHistory } from '../found-history.ts'
import { segmentNumbersIn } from '../journal-reader.ts'
import { startOf } from '../number-blocks.ts'
import { POOL_FILE, readPoolFile } from '../pool-file.ts'
import { ORPHANS_FILE, readOrphans } from '../side-files.ts'
import { hasSnapshot } from '../snapshot-writer.ts'
import { mayPass } from './database.ts'
import { databaseFault, wordsOf } from './database-fault.ts'
import type { DatabaseUrl } from './database-url.ts'
import { registered } from './registration.ts'
import { SharedKeeper } from './shared-keeper.ts'
import { SharedRows } from './shared-rows.ts'
import type { OnTakeover, RecoveredRows } from './takeover.ts'

/** Parts of the lease in which the database must answer. Then a turn has time for a second try. */
const ANSWERS_PER_LEASE = 3

export interface OpenSharedOptions {
  /** The primary and its standbys. */
  readonly urls: readonly DatabaseUrl[]
  readonly leaseMs: number
  /** Milliseconds that a start waits for the database. */
  readonly timeoutMs: number
  readonly dataDir: string
  /** As of `lockIdOf`. */
  readonly lockId: string | undefined
  /** Minimum number of past events to keep. */
  readonly maxEvents: number
  readonly onTakeover: OnTakeover
  /** The name of the cluster; empty for none. */
  readonly cluster: string
  /** Whether this replica has a directory of schedules. */
  readonly hasSchedulesDir: boolean
  /** The token that callers of all replicas send. */
  readonly token: string | undefined
  readonly log: Log
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
  const { urls, leaseMs, timeoutMs, dataDir, lockId, maxEvents, onTakeover, token, log } = options
  if (hasSnapshot(dataDir) || segmentNumbersIn(dataDir).length > 0) {
    const text = 'has graphs of a service without --database, which it would not see'
    throw new UsageError(`the data directory ${dataDir} ${text}: give another with --data-dir`)
  }
  const rows = new SharedRows({
    urls,
    leaseMs,
    answerMs: leaseMs / ANSWERS_PER_LEASE,
    lockId,
    cluster: options.cluster,
    hasSchedulesDir: options.hasSchedulesDir,
    log,
  })
  let keeper: SharedKeeper | undefined
  try {
    await reached(rows.open(timeoutMs), options)
    let told: string | undefined
    const registering = registered({
      ...{ rows: rows.replicas, leaseMs, timeoutMs, signal: options.signal },
      onFault: (fault) => {
        const cause = wordsOf(fault) ?? fault.message
        if (cause !== told) log.warn('this replica is not registered yet', { cause })
        told = cause
      },
      onWaiting: ({ id, address }) =>
        log.info('a replica of an earlier version is active', { replica: id, url: address }),
    })
    await reached(registering, options)
    markDatabase(
      dataDir,
      urls.map(({ place }) => place),
    )
    for (const replica of rows.replicas.predecessors)
      log.info('the killed replica of this data directory was declared dead', { replica })
    const first = startOf(rows.replicas.id)
    const store = new TaskStore({ lastSeq: first, lastOrdinal: first })
    const found = findHistory(dataDir)
    const history = new EventHistory({ dataDir, found, kept: undefined, lastSeq: first, maxEvents, log })
    keeper = new SharedKeeper({ rows, store, history, maxEvents, leaseMs, onTakeover, token, log })
    const recovered = await keeper.recover()
    await importDirectory(dataDir, keeper, log)
    await keeper.runtimes.pool.look()
    log.info('this replica is registered', { replica: rows.replicas.id })
    return { store, keeper, recovered }
  } catch (error) {
    await (keeper ?? rows).close()
    throw error
  }
}

/** What `opening` rejects with, for the person who started the service. */
async function reached(
  opening: Promise<void>,
  { urls, timeoutMs, signal }: Pick<OpenSharedOptions, 'urls' | 'timeoutMs' | 'signal'>,
): Promise<void> {
  try {
    await opening
  } catch (error) {
    if (error instanceof UsageError || signal.aborted) throw error
    const fault = databaseFault(error)
    const place = fault.place ?? urls.map((url) => url.place).join(', ')
    const text = `${place}: ${fault.message} (taskmill-control database check tells more)`
    if (!mayPass(fault)) throw new UsageError(`cannot use the database ${text}`)
    throw new StartFault(`no database within ${timeoutMs / 1_000} s (--database-timeout): ${text}`)
  }
}

/**
 * Moves the files of an earlier version in the data directory into the database: changes of the pool of runtime services, and
 * attempts that control still has to end there. The files are kept under another name. Throws `UsageError` for a file that
 * is unreadable, and `StartFault` if the database does not take it.
 */
async function importDirectory(dataDir: string, keeper: SharedKeeper, log: Log): Promise<void> {
  const [poolPath, orphansPath] = [join(dataDir, POOL_FILE), join(dataDir, ORPHANS_FILE)]
  const paths = [poolPath, orphansPath].filter((path) => existsSync(path))
  if (paths.length === 0) return
  const pool = readPoolFile(poolPath)
  const orphans = readOrphans(orphansPath)
  try {
    await keeper.runtimes.pool.change((state) => withFile(state, pool))
    for (const orphan of orphans) keeper.runtimes.orphans.add(orphan)
    await keeper.kept('promise')
    for (const path of paths) renameSync(path, `${path}.moved`)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new StartFault(`cannot move ${paths.join(' and ')} into the database: ${messageOf(error)}`)
  }
  for (const path of paths)
    log.info('a file of the data directory was moved into the database', { path: `${path}.moved` })
}
