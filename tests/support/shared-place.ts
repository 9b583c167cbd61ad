/** Opens a database as the start of a replica does: the store with the graphs found there, and their keeper. */
import { EventHistory } from '../../control/journal/event-history.ts'
import { findHistory } from '../../control/journal/found-history.ts'
import { parseDatabaseUrls } from '../../control/shared-store/database-url.ts'
import { type RecoveredRows, SharedKeeper } from '../../control/shared-store/shared-keeper.ts'
import { FIRST_OF_REPLICA, SharedRows } from '../../control/shared-store/shared-rows.ts'
import { TaskStore } from '../../control/store/tasks.ts'
import { silentLog } from '../../shared/log.ts'
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
  const active = await rows.activate('http://127.0.0.1:1', false)
  if (active !== undefined) throw new Error(`replica ${active.id} is active`)
  const first = rows.id * FIRST_OF_REPLICA
  const store = new TaskStore({ lastSeq: first, lastOrdinal: first })
  const dataDir = temp.path
  const found = findHistory(dataDir)
  const history = new EventHistory({ dataDir, found, kept: undefined, lastSeq: first, maxEvents: 100_000, log })
  const lost: string[] = []
  const keeper = new SharedKeeper({ rows, store, history, leaseMs, log })
  keeper.onLost((why) => void lost.push(why))
  const recovered = await keeper.recover()
  const end = async () => {
    await keeper.abandon()
    await history.close()
    temp[Symbol.dispose]()
  }
  return { store, keeper, rows, recovered, lost, [Symbol.asyncDispose]: end }
}
