/**
 * Ends processes that a killed service left running, before their tasks run again.
 *
 * Processes are found in two ways: the journal has each group leader with its start time, and each process has
 * TASKMILL_ATTEMPT in its environment, which begins with the mark of the data directory. The first way finds processes
 * that changed their environment. The second finds processes that left their group, or started just before the kill.
 */
import type { Log } from '../../shared/logs/log.ts'
import { endGroup } from '../../shared/process/process-group.ts'
import { isStillThere, markedProcesses, type ProcessIdentity, processStat } from '../../shared/process/processes.ts'
import { attemptMarkOf } from '../../shared/process/service-id.ts'

/**
 * Resolves when all of them have ended. Never signals another process that reuses a pid. `serviceId` is the mark of the data
 * directory, `graceMs` the milliseconds between TERM and KILL.
 */
export async function endLeftovers(
  processes: readonly ProcessIdentity[],
  serviceId: string,
  graceMs: number,
  log: Log,
): Promise<void> {
  const onRecord = processes.filter(isStillThere).map(({ pid }) => pid)
  const marked = markedProcesses(attemptMarkOf(serviceId)).map((pid) => processStat(pid)?.group ?? 0)
  // Group 0 is the group of this process.
  const groups = new Set([...onRecord, ...marked].filter((group) => group > 1))
  if (groups.size === 0) return
  log.warn('ending what an earlier run of the service left running', { groups: [...groups] })
  await Promise.all([...groups].map((group) => endGroup(group, graceMs)))
}
