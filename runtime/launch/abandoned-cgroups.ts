/**
 * Removes the empty cgroups of services that were killed and never started again.
 *
 * A service that starts again cleans up its own cgroups. For a service that never does, because its data directory is
 * gone or nobody needs it any more, the next start of any other service that shares the directory does it. Cgroups are
 * removed only when their service is certainly gone: the process that wrote the record is dead, and the data directory
 * does not exist or is not locked. We hold its lock meanwhile, so that the service cannot start. Cgroups stay if they
 * have processes or a living launcher, have no record, or belong to another mount namespace, where the path in the
 * record means another directory.
 */
import { basename, dirname, join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { LOCK_FILES, whileUnlocked } from '../../shared/files/directory-lock.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { taskDir } from '../files/task-dir.ts'
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
import { hasLauncher } from './launcher-files.ts'

/** Name of the empty cgroup of a service (`serviceIdOf`). The names of its task cgroups begin with it. */
const SERVICE_ID = /^\d+-\d+$/

export interface Sweep {
  /** Services whose cgroups were removed. */
  readonly removed: number
  /** Cgroups of services whose data directory did not answer in time. */
  readonly unanswered: readonly string[]
}

/**
 * Removes the cgroups of abandoned services beside those of `cgroups`. Other users write records, so a path in one may
 * be on a file system that never answers: a thread checks each cgroup (`removeIfAbandoned`), for LOOK_TIMEOUT_MS at
 * most. There is no thread for those of services that run. Rejects with `NoThread` when too many threads hang.
 */
export async function removeAbandonedCgroups({
  directories,
  serviceId,
}: Pick<TaskCgroups, 'directories' | 'serviceId'>): Promise<Sweep> {
  const removed = new Set<string>()
  const unanswered: string[] = []
  const threads = new PathLooks<boolean>(() => startThread('sweep'), { placeOf: (group) => group })
  try {
    for (const directory of new Set(Object.values(directories))) {
      for (const id of namesBelow(directory)) {
        if (id === serviceId || !SERVICE_ID.test(id)) continue
        const group = join(directory, id)
        if (hasLivingWriter(group)) continue
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

/** Asks the kernel alone, which always answers. A thread would cost a start 8 ms of CPU time. */
function hasLivingWriter(group: string): boolean {
  try {
    return readRecords(group).some((record) => record !== null && isWriterAlive(record) === true)
  } catch {
    return false // the group of another user, or one that was just removed
  }
}

/**
 * Removes the cgroup of a service and those of its tasks if it is abandoned. Returns whether it did. May never return.
 */
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
 * Calls `work` if the service of each record is gone, while holding the locks of all data directories that exist.
 * `locked` are those whose lock is held already: records of several runs name the same directory.
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

/** Whether the data directory is still at its path. Another directory at that path does not count. */
function dataDirStillExists(id: string, { data_dir }: CgroupRecord): boolean {
  try {
    return serviceIdOf(data_dir) === id
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return false
    return true // we may not read it, so it may exist
  }
}

/** Returns whether nothing of the service is left. Its own cgroup goes last, because it holds the record. */
function removeCgroups(directory: string, id: string, records: readonly CgroupRecord[]): boolean {
  const names = namesBelow(directory).filter((name) => isCgroupOf(id, name))
  const left = names.filter((name) => {
    const taskId = name.slice(id.length + 1)
    // A launcher makes the cgroup of its task before there is a process in it, and reads it when all are gone.
    const isUsed = records.some(({ data_dir }) => hasLauncher(taskDir(data_dir, taskId).task_dir, true))
    return isUsed || !removeEmptyCgroups(join(directory, name))
  })
  return left.length === 0 && removeEmptyCgroups(join(directory, id))
}
