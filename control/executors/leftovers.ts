/**
 * Ends what a killed service left running, before its tasks run again.
 *
 * Every process of an attempt is known in two ways: its group's leader is on record with its start time, and all of them
 * carry TASKMILL_ATTEMPT, which begins with the mark of the data directory. The first finds what changed its
 * environment, the second what left its group, or was started in the moment before it was put on record.
 */
import type { Log } from '../../shared/log.ts'
import { endGroup } from '../../shared/process-group.ts'
import { isStillThere, markedProcesses, type ProcessIdentity, processStat } from '../../shared/processes.ts'
import { attemptMarkOf } from '../../shared/service-id.ts'

export interface LeftoversOptions {
  readonly processes: readonly ProcessIdentity[]
  /** The mark of the data directory. */
  readonly serviceId: string
  /** Milliseconds between TERM and KILL. */
  readonly graceMs: number
  readonly log: Log
}

/** Resolves when none of them runs any more. Never signals a process that only has the pid of one of them. */
export async function endLeftovers({ processes, serviceId, graceMs, log }: LeftoversOptions): Promise<void> {
  const onRecord = processes.filter(isStillThere).map(({ pid }) => pid)
  const marked = markedProcesses(attemptMarkOf(serviceId)).map((pid) => processStat(pid)?.group ?? 0)
  // Group 0 would be our own.
  const groups = new Set([...onRecord, ...marked].filter((group) => group > 1))
  if (groups.size === 0) return
  log.warn('ending what an earlier run of the service left running', { groups: [...groups] })
  await Promise.all([...groups].map((group) => endGroup(group, graceMs)))
}
