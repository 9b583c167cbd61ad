/** Opens a database as the start of a replica does: the store with the graphs found there, and their keeper. */
import { EventHistory } from '../../control/log/event-history.ts'
import { findHistory } from '../../control/log/found-history.ts'
import { BLOCK } from '../../control/log/number-blocks.ts'
import { parseDatabaseUrls } from '../../control/log/postgres/database-url.ts'
import { SharedKeeper } from '../../control/log/postgres/shared-keeper.ts'
import { SharedRows } from '../../control/log/postgres/shared-rows.ts'
import type { RecoveredRows } from '../../control/log/postgres/takeover.ts'
import { TaskStore } from '../../control/task/task-store.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { tempDir } from './temp.ts'

export interface OpenShared extends AsyncDisposable {
  readonly store: TaskStore
  readonly keeper: SharedKeeper
  readonly rows: SharedRows
  readonly recovered: RecoveredRows
  /** Why the replica was fenced. */
  readonly lost: string[]
}

export async function openShared(url: string, { leaseMs = 10_000 } = {}): Promise<OpenShared> {
  const log = silentLog()
  const temp = tempDir()
  const urls = parseDatabaseUrls([url], 'test')
  const rows = new SharedRows({ urls, leaseMs, answerMs: Math.min(2_000, leaseMs / 2), log })
  await rows.open(30_000)
  const earlier = await rows.replicas.register(false)
  if (earlier !== undefined) throw new Error(`replica ${earlier.id} of an earlier version is active`)
  const first = rows.replicas.id * BLOCK
  const store = new TaskStore({ lastSeq: first, lastOrdinal: first })
  const dataDir = temp.path
  const found = findHistory(dataDir)
  const history = new EventHistory({ dataDir, found, kept: undefined, lastSeq: first, maxEvents: 100_000, log })
  const lost: string[] = []
  const options = { maxEvents: 100_000, leaseMs, onTakeover: 'rerun', token: undefined } as const
  const keeper = new SharedKeeper({ rows, store, history, ...options, log })
  keeper.onLost((why) => void lost.push(why))
  const recovered = await keeper.recover()
  await keeper.orphans.look()
  const end = async () => {
    await keeper.abandon()
    await history.close()
    temp[Symbol.dispose]()
  }
  return { store, keeper, rows, recovered, lost, [Symbol.asyncDispose]: end }
}
