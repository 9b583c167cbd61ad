/** Opens a data directory as a start of the service does: the store with the graphs found there, and their keeper. */
import { EmbeddedKeeper, type EmbeddedKeeperOptions } from '../../control/log/embedded-keeper.ts'
import { EventNumbers } from '../../control/log/event-numbers.ts'
import { recover } from '../../control/log/recovery.ts'
import { TaskStore } from '../../control/task/task-store.ts'
import { type Log, silentLog } from '../../shared/logs/log.ts'
import { runSync } from '../../shared/process/steps.ts'

/** Snapshots are taken only at the end. `syncFile` stands for the disk. */
export async function openEmbedded(
  dataDir: string,
  { log = silentLog(), ...options }: { log?: Log } & Pick<EmbeddedKeeperOptions, 'syncFile'> = {},
) {
  const recovered = await recover(dataDir)
  const numbers = new EventNumbers(recovered)
  const store = new TaskStore({ lastSeq: numbers.start, lastOrdinal: recovered.lastOrdinal })
  for (const graph of recovered.graphs) runSync(store.recover(graph))
  const limits = { intervalMs: 3_600_000, maxEvents: 100_000 }
  return {
    store,
    keeper: new EmbeddedKeeper({ ...{ store, numbers, recovered, dataDir, log }, ...limits, ...options }),
  }
}
