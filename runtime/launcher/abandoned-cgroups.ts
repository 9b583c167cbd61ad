/**
 * Removes the empty control groups of services that were killed and not started again.
 *
 * A service that starts again cleans up its own. For one that never does, because its data directory is gone or nobody
 * wants it any more, the next start of any other does it, in the directory that they share. A group is removed only when
 * its service is gone for certain: the process that wrote the record has ended, and the data directory is either no longer
 * there or not locked. Its lock is held meanwhile, so that the service cannot start in between. Groups with processes
 * stay, as do those of a launcher that lives, those without a record, and those of another mount namespace, where the path
 * in the record means another directory.
 */
import { basename, dirname, join } from 'node:path'
import { LOCK_FILES, whileUnlocked } from '../../shared/directory-lock.ts'
import { systemCodeOf } from '../../shared/errors.ts'
import { serviceIdOf } from '../../shared/service-id.ts'
import { namesBelow } from '../host/cgroup-files.ts'
import {
  type CgroupRecord,
  isSeenFromHere,
  isWriterAlive,
  readRecords,
  removeEmptyCgroups,
} from '../host/cgroup-record.ts'
import { PathLooks, PathTimeout } from '../host/path-looks.ts'
import { isCgroupOf, type TaskCgroups } from '../host/task-cgroups.ts'
import { startThread } from '../host/threads.ts'
import { taskDir } from '../store/task-dir.ts'
import { isLauncherAlive } from './launcher-files.ts'

/** The name of the empty group of a service (`serviceIdOf`); the groups of its tasks begin with it. */
const SERVICE_ID = /^\d+-\d+$/

export interface Sweep {
  /** Services whose groups were removed. */
  readonly removed: number
  /** Groups of services whose data directory did not answer in time. */
  readonly unanswered: readonly string[]
}

/**
 * Removes the groups of abandoned services beside those of `cgroups`. Records are written by others, so a path in one may
 * be on a file system that never answers: a thread looks at each group (`removeIfAbandoned`), for LOOK_TIMEOUT_MS at most.
 * Rejects with `NoThread` when too many threads hang.
 */
export async function removeAbandonedCgroups({ directories, serviceId }: TaskCgroups): Promise<Sweep> {
  const removed = new Set<string>()
  const unanswered: string[] = []
  const threads = new PathLooks<boolean>(() => startThread('sweep'), { placeOf: (group) => group })
  try {
    for (const directory of new Set(Object.values(directories))) {
      for (const id of namesBelow(directory)) {
        if (id === serviceId || !SERVICE_ID.test(id)) continue
        const group = join(directory, id)
        try {
          if (await threads.lookAt(group)) removed.add(id)
        } catch (error) {
          if (!(error instanceof PathTimeout)) throw error
          unanswered.push(group)
        }
      }
    }
  } finally {
    threads.close()
  }
  return { removed: removed.size, unanswered }
}

/** Removes the group of a service, with those of its tasks, when it is abandoned; whether it did. May take for ever. */
export function removeIfAbandoned(group: string): boolean {
  const [directory, id] = [dirname(group), basename(group)]
  const records = readRecords(group)
  if (records.length === 0 || !records.every((record) => record !== null)) return false
  let isRemoved = false
  withLocksOf(id, records, new Set(), () => {
    isRemoved = removeCgroups(directory, id, records)
  })
  return isRemoved
}

/**
 * Calls `work` when the service of each record is gone, with the locks of all data directories that are there. `locked`
 * are those whose lock is held already: records of several runs name the same directory.
 */
function withLocksOf(
  id: string,
  [record, ...others]: readonly CgroupRecord[],
  locked: ReadonlySet<string>,
  work: () => void,
): void {
  if (record === undefined) {
    work()
    return
  }
  if (!isSeenFromHere(record) || isWriterAlive(record) === true) return
  const { data_dir } = record
  const next = () => withLocksOf(id, others, new Set([...locked, data_dir]), work)
  if (locked.has(data_dir)) next()
  else if (dataDirStillExists(id, record)) whileUnlocked(data_dir, LOCK_FILES.runtime, next)
  else if (isWriterAlive(record) === false) next()
}

/** Whether the data directory can be seen under its path; another one that has the path now does not count. */
function dataDirStillExists(id: string, { data_dir }: CgroupRecord): boolean {
  try {
    return serviceIdOf(data_dir) === id
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return false
    return true // what we may not look at may be there
  }
}

/** Whether nothing of the service is left. Its own group, which holds the record, goes last. */
function removeCgroups(directory: string, id: string, records: readonly CgroupRecord[]): boolean {
  const names = namesBelow(directory).filter((name) => isCgroupOf(id, name))
  const left = names.filter((name) => {
    const taskId = name.slice(id.length + 1)
    const isUsed = records.some(({ data_dir }) => mayHaveLauncher(taskDir(data_dir, taskId).task_dir))
    return isUsed || !removeEmptyCgroups(join(directory, name))
  })
  return left.length === 0 && removeEmptyCgroups(join(directory, id))
}

/** A launcher makes the group of its task before there is a process in it, and reads it when there is none any more. */
function mayHaveLauncher(path: string): boolean {
  try {
    return isLauncherAlive(path)
  } catch {
    return true
  }
}
