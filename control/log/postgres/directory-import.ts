/**
 * Moves the files of an earlier version in the data directory of a replica into the database: changes of the pool of runtime
 * services, and attempts that control still has to end there. The files are kept under another name.
 */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, StartFault, UsageError } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { withFile } from '../../graph/pool-state.ts'
import { ORPHANS_FILE, readOrphans } from '../orphan-file.ts'
import { POOL_FILE, readPoolFile } from '../pool-file.ts'
import type { SharedRuntimes } from './shared-runtimes.ts'

export interface DirectoryImport {
  readonly dataDir: string
  readonly runtimes: Pick<SharedRuntimes, 'orphans' | 'pool'>
  /** As `Keeper.kept`. */
  readonly kept: () => Promise<void> | undefined
  readonly log: Log
}

/** Throws `UsageError` for a file that is unreadable, and `StartFault` if the database does not take it. */
export async function importDirectory({ dataDir, runtimes, kept, log }: DirectoryImport): Promise<void> {
  const [poolPath, orphansPath] = [join(dataDir, POOL_FILE), join(dataDir, ORPHANS_FILE)]
  const paths = [poolPath, orphansPath].filter((path) => existsSync(path))
  if (paths.length === 0) return
  const pool = readPoolFile(poolPath)
  const orphans = readOrphans(orphansPath)
  try {
    await runtimes.pool.change((state) => withFile(state, pool))
    for (const orphan of orphans) runtimes.orphans.add(orphan)
    await kept()
    for (const path of paths) renameSync(path, `${path}.moved`)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new StartFault(`cannot move ${paths.join(' and ')} into the database: ${messageOf(error)}`)
  }
  for (const path of paths)
    log.info('a file of the data directory was moved into the database', { path: `${path}.moved` })
}
